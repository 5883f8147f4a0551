# Targets are explained by `make help`.
SHELL := /bin/bash
GO    ?= go
BIN   := build/bin/dagrun
export GOFLAGS ?= -buildvcs=false

.PHONY: help build demo test check vet lint unit race specs faults mutate bench golden docs test-real-cli setup clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the dagrun binary, in build/bin
	@mkdir -p build/bin
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/dagrun

demo: build ## the main job, offline: the corpus pipeline with the simulated agent
	@internal/scripts/setup --demo
	./$(BIN) apply specs/corpus-integration

setup: ## what tests need beside Go and a C compiler (Debian packages)
	@internal/scripts/setup

# Two stages side by side, the longest first: the last tests of each leave a core idle. Without -o build the longest would
# wait for a second build, and be last.
test: setup vet lint build ## everything that must pass
	@$(MAKE) --no-print-directory -j2 -o build specs race unit
	@echo "make test: all green"

check: test

vet:
	$(GO) vet ./...

lint: ## gofmt and staticcheck
	@out=$$(gofmt -l cmd dag internal nodes schemas specs examples); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	@mkdir -p build/bin && cd internal/tools && $(GO) build -o ../../build/bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	build/bin/staticcheck ./...

# Packages whose goroutines share memory. Their tests run under the race detector, once; all others run without it.
RACED := ./dag/artifact/... ./dag/eventlog/... ./dag/executor/... ./dag/run/... ./dag/runlog/... \
	./nodes/agent/... ./nodes/exec/... ./nodes/gates/... ./nodes/http/... ./nodes/scan/... ./nodes/screenshot/... \
	./nodes/internal/browser/... ./nodes/internal/httpc/... ./nodes/internal/proc/... \
	./nodes/internal/simagent/... ./internal/awake/... ./internal/changes/...

# What the detector only makes slow: tests of one goroutine, and of many pictures. The race stage leaves them out, by name,
# and the unit stage runs them instead (internal/tidy holds the names to the tests).
UNRACED := ^Test(EveryBitFlipped|CrashAtEveryStep|CrashWhileReusing|CrashWhileAdopting|CrashWhilePuttingAway|CrashWhileRecovering|DiskFailsAtEveryStep|Pictures|SamePageSameBytes|Neighbours|VeryTall|RescueAtEveryByte|RescueOfAStreamAtEveryByte)$$|^TestPages$$/^console_flood$$

# Of packages that are not raced: the tests of what may be called from any goroutine, and, with a raced program, the
# scripts in which signals, requests and children meet.
SIDE_BY_SIDE := ./dag/compile ./dag/expr
SCRIPTS := ^TestScripts$$/^(cancel|childpipes|hello|interrupt|interrupt2|operator|park|stoppedonce)$$

# Tests collect garbage less often: that is a third of the processor time of packages that compile plans or fold logs. The
# programs that tests start do not hear of it and keep to internal/heap.
unit race specs: export GOGC ?= 400

# Packages whose tests start the program take the one that is there: each would link it again.
unit specs: export DAGRUN_PROGRAM = $(CURDIR)/$(BIN)

unit: build ## unit tests, simulations, scripts and browser tests, but for what race runs
	$(GO) test -timeout 1h $$($(GO) list ./... | grep -v -e /specs -e /examples | grep -vxF "$$($(GO) list $(RACED))")
	$(GO) test -timeout 1h -run '$(UNRACED)' $(RACED)

race: ## the packages with goroutines, under the race detector
	$(GO) test -race -timeout 1h -skip '$(UNRACED)' $(RACED)
	$(GO) test -race -timeout 1h -run SideBySide $(SIDE_BY_SIDE)
	$(GO) test -race -timeout 1h -run '$(SCRIPTS)' ./internal/cli

specs: build ## whole offline runs of specs/ and examples/
	$(GO) test -count=1 -timeout 90m ./specs/... ./examples/...

faults: build ## kill -9 at every event of a corpus run, each in a run of its own; ten thousand ticks (long)
	DAGRUN_STOPPED=60 $(GO) test -count=1 -run TestScripts/stopped ./internal/cli
	DAGRUN_TICKS=10000 $(GO) test -count=1 -timeout 2h -run ManyTicks ./internal/cli
	DAGRUN_KILLS=200 $(GO) test -count=1 -timeout 1h -run KilledAtRandom ./internal/cli
	DAGRUN_FAULTS=all $(GO) test -count=1 -timeout 6h -run Faults ./specs/...
	$(GO) test -count=1 -timeout 1h -run PipelinesOfDocuments ./internal/testing/dagtest -seeds 2000
	DAGRUN_FAULTS=all $(GO) test -count=1 -timeout 2h -run DiskFailsDuringWhatHappensOnce ./internal/cli

mutate: ## change the large specification and the state machine in one place at a time: which change does no test notice? (hours; MUTATE="-only spec -sample 50")
	nice -n 15 $(GO) run ./internal/testing/mutate $(MUTATE)

bench: build ## ratios beside make and ninja, growth curves, makespans, looks at many files
	@internal/scripts/setup --bench
	$(GO) run ./internal/testing/bench
	$(GO) test -timeout 2h ./nodes/scan -run - -bench Scan -benchtime 9x

golden: ## renew golden files; read the diff
	$(GO) test $$(grep -rl --include=*_test.go '"update"' cmd dag internal nodes specs examples | xargs -n1 dirname | sort -u | sed 's|^|./|') -update

docs: ## docs/reference from the schemas, and what the commands of the guide print
	$(GO) test ./internal/manual -update
	-$(GO) test ./docs -update

test-real-cli: ## a real agent CLI against a loopback API (installs it from npm)
	$(GO) test -count=1 -tags realcli -timeout 40m -run RealCLI -v ./nodes/agent/... ./specs

clean:
	rm -rf build
