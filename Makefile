# The menu of actions. Needs Go, make and bash; format/python is tested where Python and NumPy are. `make help` lists it.
SHELL := /bin/bash
GO ?= go
GOFMT = $(shell $(GO) env GOROOT)/bin/gofmt
FUZZTIME ?= 30s
BENCH ?= .
DATA ?=
NAME ?=
DIR ?= data
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := all
.PHONY: all build found test test-python python-adapters test-race test-kill vet fmt fmt-check ci demo data fuzz bench bench-large bench-load bench-snapshot acceptance clean help

all: build found ## build bin/precompute and bin/trainer-gnn, and say what was found

build: ## build only
	$(GO) build -trimpath -buildvcs=false -o bin/precompute ./precompute
	$(GO) build -trimpath -buildvcs=false -o bin/trainer-gnn ./trainer/gnn

found: ## say which tools are here
	@GO="$(GO)" scripts/found

test: ## run the tests, some minutes on two cores
	$(GO) test ./...
	scripts/python-tests

test-python: ## run the tests of format/python alone
	scripts/python-tests

python-adapters: ## test format/python with PyTorch, PyG and DGL, in an environment of its own (.python; downloads from PyPI)
	scripts/python-adapters

test-race: ## run the short tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short ./...

test-kill: ## kill batches, its parts and its merge at random moments and start them again, 40 and 20 times (a minute)
	PRELIFT_KILLS=20 $(GO) test -count=1 -v -run '^TestKilledShards$$' ./scripts/e2e

vet: ## go vet
	$(GO) vet ./...

fmt: ## format all Go files
	$(GOFMT) -w .

fmt-check: ## fail when a Go file is not formatted
	@files="$$($(GOFMT) -l .)" && if [ -n "$$files" ]; then echo "not formatted (run make fmt):" $$files >&2; exit 1; fi

ci: ## what continuous integration runs
	.ci/run

demo: build ## generate, precompute and train, under 90 s; DATA=cora takes Cora from PRELIFT_DATA or downloads it
	@DATA="$(DATA)" scripts/demo

data: ## download a public data set: NAME=cora [DIR=data]; NAME=list shows them
	@GO="$(GO)" scripts/datasets $(or $(NAME),list) $(if $(filter-out list,$(NAME)),$(DIR))

fuzz: ## run every fuzz target of format for FUZZTIME (30s) each
	@GO="$(GO)" FUZZTIME="$(FUZZTIME)" scripts/fuzz ./format/...

bench: ## run the benchmarks that match BENCH, 10 times each, for benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -count 10 ./...

bench-snapshot: build ## how fast snapshots are built from 62 M edges as CSV, Parquet and strings, and the index of neighbours (some minutes, 6 GB of disk)
	$(GO) run ./scripts/bench/snapshot -bin bin/precompute $(BENCH_FLAGS)

bench-large: build ## a snapshot of more than 2^31 entries in 8 GB of memory (a quarter of an hour and more, 65 GB of disk)
	$(GO) run ./scripts/bench/snapshot -bin bin/precompute -nodes 40000000 -pairs 1200000000 -mem 8G -kinds csv -runs 1 -touch 0 $(BENCH_FLAGS)

bench-load: build ## how fast batches load, warm, for three batch sizes (about a minute)
	scripts/bench/load

acceptance: build ## the slow accuracy checks on real data (PRELIFT_DATA)
	PRELIFT_ACCEPTANCE=1 $(GO) test -count=1 -v -timeout 60m -run '^Test(Accuracy|Acceptance)' ./...

clean: ## remove bin, demo and .python
	rm -rf bin demo .python

help: ## list the actions
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
