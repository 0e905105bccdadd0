# `make test` and `make demo` fetch what they need. Downloads go to .cache/; only Debian packages are installed outside.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

CACHE := $(CURDIR)/.cache

GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)

PYTHON_REQUIREMENTS := ingest/emitters/python/requirements.txt
VENV := $(CACHE)/venv/.complete

PEERS_REQUIREMENTS := detectors/peers/requirements.txt
PEERS_VENV := $(CACHE)/venv-peers/.complete

AXE_LOCK := cmd/rewardwatch/console/e2e/axe/package-lock.json
AXE := $(CACHE)/axe/.complete

# The tests of real servers are those in files tagged e2e; they run by name, or every unit test would run twice. WHOLE are those of
# the whole service; those of the others that take longest begin first.
WHOLE = ./cmd/rewardwatch/e2e
E2E_FILES = $(shell grep -rlE '^//go:build e2e$$' --include='*_test.go' alerts cmd dashboards deploy detectors ingest retrain)
E2E_PACKAGES = ./retrain $(filter-out $(WHOLE) ./retrain,$(sort $(patsubst %/,./%,$(dir $(E2E_FILES)))))
E2E_TESTS = $(shell grep -hoE '^func Test[A-Za-z0-9_]+' $(E2E_FILES) /dev/null | grep -v TestMain | cut -c6- | sort -u | paste -sd '|')

# Every other test runs once, with the race detector where goroutines can share something. Without it run those that simulate so
# much, or have SQLite do so much, that it would take minutes over them: PLAIN are whole packages, PLAIN_TESTS tests of others.
# MIXED packages have tests of both kinds, as has the ledger: RACES and LEDGER_RACES run with the detector, and so do the services
# that they start.
PLAIN = ./detectors/kstable ./retrain/expectation ./retrain/experience
PLAIN_TESTS = ^Test(CauseOf(Simulated|TwoVersions)|TenureModel|TenureDamage|RestartA|RestartWithin)
MIXED = ./detectors ./detectors/bank ./cmd/rewardwatch
RACES = ^(TestBootstrap|TestOverlapOf|TestBackgroundCalibration|TestUnitsThat|TestCalibrationsAreKept|TestRebalance|TestMarksAre|TestBrokersThat|TestDesksThat|TestOrderGives|TestPartition|TestReadingWaits|TestDecision|TestMuteEnds|TestPromote|TestServiceFinds|TestReload|TestHTTP|TestServer)
LEDGER = ^Test(Ledger|Crashes|KilledDesk)
LEDGER_RACES = ^TestLedgerOnSQLite$$/^(ConsiderConcurrently|OneDelivery|ShutdownFinishes|RealSockets|CircuitIsTried|WithdrawnInFlight|StartsAtOnce|AwaitedWhile|HangingTarget|FinishedJobs|CommandMakes)
RACED = $(filter-out $(PLAIN) $(MIXED) ./retrain,$(patsubst github.com/rewardwatch/rewardwatch%,.%,$(shell go list ./...)))

FUZZ_FILES = $(shell grep -rlE '^func Fuzz' --include='*_test.go' alerts cmd dashboards deploy detectors ingest retrain)
FUZZTIME ?= 30s

# The service under load while everything around it fails, and for how long it holds out: not part of `make test`, which has
# the kills in a short form.
KILLS ?= 100
DURATION ?= 20m

.PHONY: build demo test test-faults soak lint bench bench-detection peers ks-table fuzz axe kafka kafka-stop packages clean

build:
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -o bin/rewardwatch ./cmd/rewardwatch

demo: build
	bin/rewardwatch demo

# lane runs tests after each other and keeps what they say. Two lanes run at once, which on two cores take 12 and 11 minutes.
lane = { bad=0; $(2); exit $$bad; } | tee $(CACHE)/test/$(1).json | awk -f .ci/progress.awk

test: packages $(VENV) $(AXE)
	deploy/local/kafka/kafka.sh fetch
	go vet -tags e2e,faults ./...
	mkdir -p $(CACHE)/test
	run() { go test -timeout 20m -json "$$@" || bad=1; }
	failed=0
	$(call lane,one,
		run -skip '$(RACES)' $(MIXED)
		run -run '$(LEDGER)' -skip '$(LEDGER_RACES)' ./retrain
		run $(PLAIN)
		run -run '$(PLAIN_TESTS)' ./alerts ./ingest/assemble ./ingest/checkpoint
		run -tags e2e -count=1 -run '^($(E2E_TESTS))$$' $(E2E_PACKAGES)) & one=$$!
	$(call lane,two,
		run -p 1 -race -skip '$(PLAIN_TESTS)' $(RACED)
		run -p 1 -race -run '$(RACES)' $(MIXED)
		run -race -run '$(LEDGER_RACES)' ./retrain
		run -race -skip '$(LEDGER)' ./retrain
		run -tags e2e -count=1 -run '^($(E2E_TESTS))$$' $(WHOLE)) || failed=1
	wait $$one || failed=1
	awk -v closing=1 -f .ci/progress.awk $(CACHE)/test/{one,two}.json || failed=1
	exit $$failed

test-faults: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,faults -count=1 -timeout 2h -run '^TestFaults$$' -v ./cmd/rewardwatch/e2e -args -kills $(KILLS)
	go test -count=1 -timeout 1h -run '^TestCrashes$$' -v ./retrain -args -crash-requests 10000 -crashes $(KILLS)
	go test -tags e2e -count=1 -timeout 1h -run '^TestPostgreSQL$$/^Crashes$$' -v ./retrain -args -crash-requests 10000 -crashes $(KILLS)

soak: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,faults -count=1 -timeout 0 -run '^TestSoak$$' -v ./cmd/rewardwatch/e2e -args -soak $(DURATION)

lint: $(GOLANGCI)
	go vet -tags e2e,faults ./...
	go mod tidy -diff
	$(GOLANGCI) run ./...

bench:
	go test -run '^$$' -bench . -benchmem ./...

# The tables of docs/detection.md and docs/retraining.md, and how long each took; more BASELINES and RUNS make them more exact. TABLES chooses some by
# the names of their tests without TestBench, such as TABLES=Promise or TABLES='(Delay|Season)'. Those of the Python packages
# are printed where `make peers` has installed them.
BASELINES ?= 20
RUNS ?= 2000
TABLES ?=
TABLES_ALONE = sed -unE 's/^--- PASS: TestBench(.*) \((.*)s\)$$/\n\1 took \2 s./; /^(=== RUN|PASS$$|testing: warning)/d; p'
bench-detection:
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./detectors -args -runs $(RUNS) | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./detectors/bank -args -baselines $(BASELINES) | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./retrain/expectation -args -runs $(RUNS) | $(TABLES_ALONE)

peers: $(PEERS_VENV)

# The thresholds of the sliding Kolmogorov-Smirnov detector, detectors/kstabledata.go: about 15 minutes of one core.
ks-table:
	go generate ./detectors

fuzz:
	targets=0
	for file in $(FUZZ_FILES); do
		for name in $$(grep -oE '^func Fuzz[A-Za-z0-9_]+' $$file | cut -c6-); do
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file)
			targets=$$((targets + 1))
		done
	done
	echo "$$targets fuzz targets passed"

# A broker for use by hand, on 127.0.0.1:9092 unless KAFKA_PORT says otherwise.
kafka:
	deploy/local/kafka/kafka.sh start
	deploy/local/kafka/kafka.sh topic agent-telemetry 4

kafka-stop:
	deploy/local/kafka/kafka.sh stop

# What the tests of the console look for mistakes of accessibility with.
axe: $(AXE)

packages:
	deploy/local/packages.sh

clean:
	for server in kafka/kafka prometheus alertmanager postgresql; do deploy/local/$$server.sh stop; done
	rm -rf bin $(CACHE)

$(GOLANGCI):
	GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/bin/golangci-lint $@

$(VENV): $(PYTHON_REQUIREMENTS) | packages
	rm -rf $(CACHE)/venv
	python3 -m venv $(CACHE)/venv
	$(CACHE)/venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(AXE): $(AXE_LOCK) | packages
	rm -rf $(CACHE)/axe
	mkdir -p $(CACHE)/axe
	cp $(dir $<)package.json $< $(CACHE)/axe
	npm ci --prefix $(CACHE)/axe --ignore-scripts --no-audit --no-fund --silent
	touch $@

$(PEERS_VENV): $(PEERS_REQUIREMENTS) | packages
	rm -rf $(CACHE)/venv-peers
	python3 -m venv $(CACHE)/venv-peers
	$(CACHE)/venv-peers/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

.ONESHELL:
