package archtest

import (
	"strings"
	"testing"
)

func TestLayers(t *testing.T) {
	root := moduleRoot(t)
	pkgs, err := listModule(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range checkLayers(layers, everywhere, pkgs) {
		t.Error(wrong)
	}
	for _, wrong := range checkRows(layers, pkgs) {
		t.Error(wrong)
	}
}

func TestRowsBite(t *testing.T) {
	table := []layer{{pkg: "./server/..."}, {pkg: "./gone"}, {pkg: "./server/hidden"}}
	pkgs := []goPackage{{ImportPath: modulePath + "/server"}, {ImportPath: modulePath + "/server/hidden"}}
	wantLines(t, checkRows(table, pkgs), []string{"row ./gone is for no package", "row ./server/hidden is for no package"})
}

// TestLayersBite shows what the table refuses and what it lets pass.
func TestLayersBite(t *testing.T) {
	const raft = "github.com/hashicorp/raft"
	admission, api, store := modulePath+"/admission", modulePath+"/proto/admit/v1", modulePath+"/raftstore"
	storage := modulePath + "/proto/admit/storage/v1"
	tests := []struct {
		name string
		pkg  goPackage
		want []string // parts of each line, in order
	}{
		{"the core alone", goPackage{ImportPath: admission, Imports: []string{"errors", "time"}}, nil},
		{"the core with the API", goPackage{ImportPath: admission, Imports: []string{api}},
			[]string{"./admission imports ./proto/admit/v1, which its layer may not: " + coreWhy, "whoever stands between converts"}},
		{"the core with protobuf, through something", goPackage{ImportPath: admission,
			Imports: []string{"example.com/x"}, Deps: []string{"google.golang.org/protobuf/proto"}},
			[]string{"./admission pulls in google.golang.org/protobuf/proto: "}},
		{"the core's test with protobuf", goPackage{ImportPath: admission,
			testDeps: []string{"google.golang.org/protobuf/proto"}},
			[]string{"./admission pulls in google.golang.org/protobuf/proto in a test: "}},
		{"the store with raft", goPackage{ImportPath: store,
			Imports: []string{admission, storage, raft, raft + "-wal"}}, nil},
		{"the store with the API", goPackage{ImportPath: store, Imports: []string{api}},
			[]string{"which its layer may not: " + storeWhy, storageWhy}},
		{"the store with a status", goPackage{ImportPath: store, Imports: []string{"google.golang.org/grpc/codes"}},
			[]string{"the store returns Go errors"}},
		{"a part of the store", goPackage{ImportPath: store + "/wal", Imports: []string{raft}}, nil},
		{"the server over the store", goPackage{ImportPath: modulePath + "/server",
			Imports: []string{admission, store, api}, Deps: []string{raft}}, nil},
		{"the server with raft", goPackage{ImportPath: modulePath + "/server", Imports: []string{raft}},
			[]string{"./server imports github.com/hashicorp/raft: raft is raftstore's affair"}},
		{"the server with spans, and a test that keeps them", goPackage{ImportPath: modulePath + "/server",
			Imports: []string{"go.opentelemetry.io/otel/trace"}, TestImports: []string{"go.opentelemetry.io/otel/sdk/trace"}}, nil},
		{"the server with what becomes of spans", goPackage{ImportPath: modulePath + "/server",
			Imports: []string{"go.opentelemetry.io/otel/sdk/trace", "go.opentelemetry.io/otel"}},
			[]string{"./server imports go.opentelemetry.io/otel/sdk/trace: spans are made by the API alone", "what is global of OpenTelemetry"}},
		{"the core with spans", goPackage{ImportPath: admission, Imports: []string{"go.opentelemetry.io/otel/trace"}}, []string{coreWhy}},
		{"the server with the storage format", goPackage{ImportPath: modulePath + "/server", Imports: []string{storage}},
			[]string{"which its layer may not", storageWhy}},
		{"the client's test with raft behind it", goPackage{ImportPath: modulePath + "/client",
			testDeps: []string{api, raft}},
			[]string{"./client pulls in github.com/hashicorp/raft in a test: " + clientWhy}},
		{"the client's test with the server", goPackage{ImportPath: modulePath + "/client",
			XTestImports: []string{modulePath + "/client", modulePath + "/server"}},
			[]string{"./client imports ./server in a test, which its layer may not: " + clientWhy}},
		{"the tool's test with a node", goPackage{ImportPath: modulePath + "/cmd/admitctl",
			TestImports: []string{modulePath + "/internal/node"}}, nil},
		{"the tool with a node", goPackage{ImportPath: modulePath + "/cmd/admitctl",
			Imports: []string{modulePath + "/internal/node"}},
			[]string{"./cmd/admitctl imports ./internal/node, which its layer may not: "}},
		{"the node with a main package", goPackage{ImportPath: modulePath + "/internal/node",
			Imports: []string{modulePath + "/server", modulePath + "/cmd/admitd/flags"}},
			[]string{"main packages are the top"}},
		{"e2e with a node inside", goPackage{ImportPath: modulePath + "/e2e/harness",
			TestImports: []string{modulePath + "/client", modulePath + "/internal/node"}},
			[]string{"in a test, which its layer may not: " + blackWhy, blackWhy}},
		{"the old yaml", goPackage{ImportPath: modulePath + "/internal/config", Imports: []string{"gopkg.in/yaml.v3"}},
			[]string{"the one that is maintained"}},
		{"a package without a row", goPackage{ImportPath: modulePath + "/internal/misc"},
			[]string{"./internal/misc is in no row of the table"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantLines(t, checkLayers(layers, everywhere, []goPackage{tt.pkg}), tt.want)
		})
	}
}

// wantLines checks that each line of got has its part of want, in order.
func wantLines(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, part := range want {
		if !strings.Contains(got[i], part) {
			t.Errorf("line %d is %q, want it to say %q", i+1, got[i], part)
		}
	}
}
