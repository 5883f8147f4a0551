# Targets are explained by `make help`.
SHELL := /bin/bash
GO    ?= go
BIN   := build/bin/dagrun
export GOFLAGS ?= -buildvcs=false

.PHONY: help build demo test check vet lint unit race specs faults bench golden test-real-cli setup clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the dagrun binary, in build/bin
	@mkdir -p build/bin
	$(GO) build -trimpath -o $(BIN) ./cmd/dagrun

demo: build ## the main job, offline: the corpus pipeline with the simulated agent
	@internal/scripts/setup --demo
	./$(BIN) apply specs/corpus-integration

setup: ## what tests need beside Go and a C compiler (Debian packages)
	@internal/scripts/setup

test: setup vet lint unit race specs ## everything that must pass
	@echo "make test: all green"

check: test

vet:
	$(GO) vet ./...

lint: ## gofmt and staticcheck
	@out=$$(gofmt -l cmd dag internal nodes schemas specs examples); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	@mkdir -p build/bin && cd internal/tools && $(GO) build -o ../../build/bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	build/bin/staticcheck ./...

unit: ## unit tests, simulations, scripts and browser tests
	$(GO) test -timeout 30m $$($(GO) list ./... | grep -v -e /specs -e /examples)

race: ## the packages with goroutines, under the race detector
	$(GO) test -race -short -timeout 30m ./dag/eventlog/... ./dag/artifact/... ./dag/run/... ./dag/executor/... ./dag/compile/... ./nodes/... ./internal/cli/...

specs: build ## whole offline runs of specs/ and examples/
	$(GO) test -count=1 -timeout 45m ./specs/... ./examples/...

faults: build ## kill -9 at every event of a corpus run, each in a run of its own (long)
	DAGRUN_STOPPED=60 $(GO) test -count=1 -run TestScripts/stopped ./internal/cli
	DAGRUN_KILLS=200 $(GO) test -count=1 -timeout 1h -run KilledAtRandom ./internal/cli
	DAGRUN_FAULTS=all $(GO) test -count=1 -timeout 6h -run Faults ./specs/...

bench: build ## ratios beside make and ninja, growth curves, makespans
	@internal/scripts/setup --bench
	$(GO) run ./internal/testing/bench

golden: ## renew golden files; read the diff
	$(GO) test $$(grep -rl --include=*_test.go '"update"' cmd dag internal nodes specs examples | xargs -n1 dirname | sort -u | sed 's|^|./|') -update

test-real-cli: ## a real agent CLI against a loopback API (installs it from npm)
	$(GO) test -count=1 -tags realcli -timeout 40m -run RealCLI -v ./nodes/agent/...

clean:
	rm -rf build
