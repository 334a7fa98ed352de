package archtest

// layer is one row of the table: what a package may import. A pattern that ends
// in "/..." takes in the package before it and all that lies below; "./" begins
// a package of ours. The packages of one row may import one another.
type layer struct {
	pkg string
	// may are the packages of ours that it imports.
	may []string
	// tests are those that its tests import beside.
	tests []string
	// why is the reason for the row, told when an import is not in it.
	why string
	// never are imports that would be wrong for any reason.
	never []ban
}

// ban is a package that must not be imported, and why not.
type ban struct {
	pkg string
	why string
	// deep bans it by way of other packages too, in tests as well.
	deep bool
	// tests lets tests import it.
	tests bool
	// except is where the ban does not hold.
	except string
}

const (
	coreWhy    = "the core has no friends: what it needs of the world comes in with a log entry"
	clientWhy  = "programs embed the client, so it knows the public API and nothing of the server"
	storageWhy = "the formats on disk are raftstore's own, so that they and the API evolve apart"
	blackWhy   = "e2e knows the real binaries from outside only, as their users do"
	storeWhy   = "the store replicates the core's decisions and does not know who asks"
	leafWhy    = "a leaf that everybody may import imports nobody"
)

// layers is the table, bottom first. A package that no row names fails the
// test: give it a row, or better, put its code where it belongs.
var layers = []layer{
	{pkg: "./admission", why: coreWhy, tests: []string{"./internal/logline"}, never: []ban{
		{pkg: "./proto/...", why: "API, storage and core evolve apart; whoever stands between converts", deep: true},
		{pkg: "google.golang.org/...", why: coreWhy, deep: true},
		{pkg: "github.com/hashicorp/...", why: coreWhy, deep: true},
		{pkg: "go.opentelemetry.io/...", why: coreWhy, deep: true},
	}},
	{pkg: "./proto/...", why: "generated code needs its runtime alone"},

	{pkg: "./internal/clock", why: leafWhy},
	{pkg: "./internal/logging", why: leafWhy},
	{pkg: "./internal/buildinfo", why: leafWhy},
	{pkg: "./internal/certs", why: leafWhy},
	{pkg: "./internal/tokens", why: leafWhy},
	{pkg: "./internal/localaddr", why: leafWhy},
	{pkg: "./internal/hangup", why: leafWhy},
	{pkg: "./internal/repeat", why: "it knows the API's requests, and not who answers them",
		may: []string{"./proto/admit/v1", "./proto/admit/v1alpha1"}},
	{pkg: "./internal/logline", why: "it writes the core's entries as text, and no more",
		may: []string{"./admission"}},
	{pkg: "./internal/tracing", why: leafWhy},
	{pkg: "./internal/archtest", why: "it looks at the packages from outside"},
	{pkg: "./internal/pagepart", why: leafWhy},
	{pkg: "./internal/page", why: leafWhy},
	{pkg: "./internal/benchmarks", why: "it runs the core's benchmarks from outside",
		may: []string{"./internal/pagepart"}},
	{pkg: "./internal/benchcheck", why: "it runs the core's benchmarks from outside"},
	{pkg: "./internal/mutants", why: "it breaks the core's sources from outside"},
	{pkg: "./internal/nightly", why: "it runs the core's tests from outside"},

	{pkg: "./internal/policy", why: "it turns the API's policy into the core's, and no more",
		may: []string{"./admission", "./proto/admit/v1"}},
	{pkg: "./internal/descriptor", why: "it turns descriptors into the core's words, and no more",
		may: []string{"./admission"}},
	{pkg: "./internal/envoyimport", why: "it turns another's configuration into a policy, without a server",
		may: []string{"./admission", "./internal/policy", "./proto/admit/v1"}, tests: []string{"./internal/descriptor"}},
	{pkg: "./raftstore/...", why: storeWhy,
		may: []string{"./admission", "./proto/admit/storage/...", "./internal/clock", "./internal/localaddr", "./internal/certs"},
		never: []ban{
			{pkg: "google.golang.org/grpc/...", why: "the server speaks gRPC; the store returns Go errors", deep: true},
			{pkg: "./proto/admit/v1", why: storageWhy, deep: true},
			{pkg: "./server/...", why: "the server calls the store, never the other way round", deep: true},
		}},
	{pkg: "./client/...", why: clientWhy,
		may: []string{"./proto/admit/v1", "./proto/admit/v1alpha1"},
		never: []ban{
			{pkg: "github.com/hashicorp/...", why: clientWhy, deep: true},
			{pkg: "./raftstore/...", why: clientWhy, deep: true},
			{pkg: "./admission", why: clientWhy, deep: true},
		}},
	{pkg: "./internal/scenario/...", why: "scenarios run on the pure core, without a server",
		may: []string{"./admission", "./internal/policy", "./proto/admit/v1"},
		never: []ban{
			{pkg: "./server/...", why: "what a scenario shows must be the core's doing alone", deep: true},
			{pkg: "./raftstore/...", why: "what a scenario shows must be the core's doing alone", deep: true},
		}},

	{pkg: "./internal/simulate", why: "a simulation runs on the pure core, without a server",
		may: []string{"./admission", "./internal/policy"},
		never: []ban{
			{pkg: "./server/...", why: "what a simulation shows must be the core's doing alone", deep: true},
			{pkg: "./raftstore/...", why: "what a simulation shows must be the core's doing alone", deep: true},
		}},

	{pkg: "./server/...", why: "handlers check, convert, call the store once and convert back",
		may: []string{"./admission", "./raftstore", "./internal/policy", "./internal/descriptor", "./proto/admit/v1", "./proto/admit/v1alpha1", "./proto/admit/forward/v1", "./internal/clock", "./internal/localaddr", "./internal/hangup", "./internal/repeat"}},

	{pkg: "./internal/sidecar", why: "a sidecar is a client that serves others: it decides nothing",
		may: []string{"./client", "./proto/admit/v1", "./proto/admit/v1alpha1", "./internal/hangup", "./internal/repeat"},
		tests: []string{
			"./internal/node", "./internal/config", "./internal/certs", "./internal/tokens", // to run beside a real node
		},
		never: []ban{
			{pkg: "./server/...", why: "it asks nodes, it is none"},
			{pkg: "./raftstore/...", why: "it asks nodes, it is none"},
		}},

	{pkg: "./internal/config", why: "the composition root's settings", may: []string{"./..."}},
	{pkg: "./internal/node", why: "the composition root", may: []string{"./..."}},

	{pkg: "./cmd/admitd/...", why: "a main package turns flags into a config and runs a node or a sidecar",
		may:   []string{"./internal/node", "./internal/sidecar", "./internal/config", "./internal/logging", "./internal/buildinfo"},
		tests: []string{"./internal/certs"},
		never: []ban{
			{pkg: "./server/...", why: "internal/node puts the parts together"},
		}},
	{pkg: "./cmd/admitctl/...", why: "the tool is a client, with the core's scenarios and simulations built in",
		may: []string{"./client", "./internal/scenario", "./internal/simulate", "./internal/policy", "./internal/envoyimport", "./proto/admit/v1", "./internal/buildinfo", "./internal/certs", "./internal/tokens"},
		tests: []string{
			"./internal/node", "./internal/config", // to run against a real node
		},
		never: []ban{
			{pkg: "./server/...", why: "the tool talks to a server, it is none"},
		}},

	{pkg: "./e2e/...", why: blackWhy,
		may: []string{"./client", "./proto/admit/v1", "./admission", "./internal/logline"},
		never: []ban{
			{pkg: "./server/...", why: blackWhy, deep: true},
			{pkg: "./raftstore/...", why: blackWhy, deep: true},
			{pkg: "./internal/node", why: blackWhy, deep: true},
		}},
}

// everywhere are the bans that hold for all packages, their tests included.
var everywhere = []ban{
	{pkg: "github.com/hashicorp/...", except: "./raftstore/...",
		why: "raft is raftstore's affair; the rest sees its Store"},
	{pkg: "./proto/admit/storage/...", except: "./raftstore/...", why: storageWhy},
	{pkg: "go.opentelemetry.io/otel/sdk/...", except: "./internal/tracing", tests: true,
		why: "spans are made by the API alone; internal/tracing says what becomes of them"},
	{pkg: "go.opentelemetry.io/otel/exporters/...", except: "./internal/tracing",
		why: "internal/tracing alone sends spans"},
	{pkg: "go.opentelemetry.io/otel", why: "it is what is global of OpenTelemetry; a provider is passed on like a logger"},
	{pkg: "./cmd/...", except: "./cmd/...", why: "main packages are the top"},
	{pkg: "gopkg.in/yaml.v3", why: "go.yaml.in/yaml/v3 is the one that is maintained"},
}
