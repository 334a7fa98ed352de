# The tools are pinned in tools/go.mod and built by the go command: nothing has
# to be installed but Go itself.
TOOL := go tool -modfile=tools/go.mod

FUZZTIME ?= 10s
FAST     := $$(go list ./... | grep -v /e2e)

.DEFAULT_GOAL := help

.PHONY: all
all: generate lint build test ## generate, lint, build and test

.PHONY: generate
generate: ## write the Go code of proto/ and the schema of policies, and what the API promises from now on if it breaks no promise
	$(TOOL) buf generate
	go generate ./internal/policy
	@$(MAKE) --no-print-directory breaking promise

# What the API promises lies beside the tools, so that a clean clone can check it.
PROMISE := tools/api.binpb
BUILD_PROMISE = $(TOOL) buf build --exclude-source-info --path proto/admit/v1 --path proto/admit/forward -o

.PHONY: breaking
breaking: ## fail if the API breaks what it promises
	$(TOOL) buf breaking --against $(PROMISE)

.PHONY: promise
promise: ## write what the API promises, even if that breaks a promise
	$(BUILD_PROMISE) $(PROMISE)

.PHONY: generate-check
generate-check: ## fail if the Go code of proto/ and the promise are not what its sources give
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && \
	$(TOOL) buf generate --output "$$out" && \
	diff -r -q --exclude='*.proto' "$$out/proto" proto && \
	$(BUILD_PROMISE) "$$out/api.binpb" && \
	cmp "$$out/api.binpb" $(PROMISE)

.PHONY: build
build: ## build admitd and admitctl into bin/
	go build -o bin/ ./cmd/...

.PHONY: test
test: ## run all tests but those of e2e/
	go test $(FAST)
	go test -tags admit_clock ./internal/clock

# RACED are the packages of the programs that start goroutines. Of the scripts of
# admitctl, which take long, those are raced in which it starts some itself.
RACED := ./client ./cmd/admitd ./internal/certs ./internal/node ./internal/policy ./internal/sidecar ./raftstore/... ./server/...

.PHONY: race
race: ## test with the race detector what starts goroutines in the programs
	go test -race $(RACED)
	go test -race -run '^TestScripts$$/^(exec|progress|signal|wait|work)' ./cmd/admitctl
	go test -race -run '^TestImagesAreReadBesideApply$$' ./admission

HISTORIES ?= 100000

.PHONY: nightly
nightly: ## run the heavy tests, and the core's properties in HISTORIES (100000) random histories
	go run ./internal/nightly -histories $(HISTORIES)

.PHONY: mutants
mutants: ## break the core one line at a time: some test must mind each
	go run ./internal/mutants

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (10s)
	@for pkg in $(FAST); do \
		listed=$$(go test -list '^Fuzz' $$pkg) || exit 1; \
		for name in $$(echo "$$listed" | grep '^Fuzz'); do \
			echo "$$pkg $$name" && \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## run the benchmarks, those of benchmarks aside
	go test -run '^$$' -bench . -skip '^BenchmarkCost|^BenchmarkLongest' -benchmem $(FAST)

.PHONY: bench-check
bench-check: ## fail if the core's allocations or instructions (by valgrind) are not those of its baseline
	go run ./internal/benchcheck

.PHONY: benchmarks
benchmarks: ## measure what the core costs and write it into docs/benchmarks.md (wants an idle machine)
	go run ./internal/benchmarks

.PHONY: bench-peers
bench-peers: ## measure admit beside others, as ARGS say, and write it into docs/benchmarks.md (wants an idle machine)
	cd bench && go run . $(ARGS)

.PHONY: e2e
e2e: ## run the real binaries against real workers (needs Python and nginx)
	go test -count=1 -v ./e2e/...

KILLS ?= 200

.PHONY: faults
faults: ## the tests of clusters under faults at full size: KILLS (200) leader kills, transfers, rolling restart, a million entries
	ADMIT_E2E_KILLS=$(KILLS) go test -count=1 -v -timeout 2h -run '^(TestLeaderKills|TestTransfers|TestRollingRestart|TestReadyWithManyEntries|TestFaults|TestWrongClock)$$' ./e2e

.PHONY: lint
lint: ## gofmt, go vet, staticcheck and buf lint
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	go vet ./...
	$(TOOL) staticcheck ./...
	$(TOOL) buf lint

.PHONY: tidy-check
tidy-check: ## fail if a go.mod is not tidy
	go mod tidy -diff
	cd tools && go mod tidy -diff
	cd bench && go mod tidy -diff
	cd bench/etcd/server && go mod tidy -diff
	cd bench/gubernator/server && go mod tidy -diff
	cd bench/ratelimit/server && go mod tidy -diff

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)
