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

# The tests of real servers are those in files tagged e2e; they run by name, or every unit test would run twice.
E2E_FILES = $(shell grep -rlE '^//go:build e2e$$' --include='*_test.go' alerts cmd dashboards deploy detectors ingest retrain)
E2E_PACKAGES = $(sort $(addprefix ./,$(dir $(E2E_FILES))))
E2E_TESTS = $(shell grep -hoE '^func Test[A-Za-z0-9_]+' $(E2E_FILES) /dev/null | grep -v TestMain | cut -c6- | sort -u | paste -sd '|')

# These simulate so much, or have SQLite do so much, that the race detector would take minutes over each: the tests of the detectors,
# of the bank, of the command line, of what is exported, in which nothing is shared, of the ledger, and of the causes of simulated
# changes. RACES are those of them in which goroutines share something: they run with the detector too, and so do the services that
# they start.
SIMULATING = rewardwatch/detectors|detectors/bank|cmd/rewardwatch|retrain/experience|rewardwatch/retrain
CAUSES = ^TestCauseOf(Simulated|TwoVersions)
LEDGER_RACES = ^TestLedgerOnSQLite$$/^(ConsiderConcurrently|OneDelivery|ShutdownFinishes|RealSockets|SeveralInstances|CircuitIsTried|WithdrawnInFlight|StartsAtOnce|AwaitedWhile|HangingTarget|FinishedJobs|ScheduleOfSeveral|CommandMakes)
RACES = ^(TestBootstrap|TestOverlapOf|TestBackgroundCalibration|TestUnitsThat|TestCalibrationsAreKept|TestRebalance|TestMarksAre|TestBrokersThat|TestDesksThat|TestOrderGives|TestPartition|TestReadingWaits|TestDecision|TestMuteEnds|TestPromote|TestServiceFinds|TestReload|TestHTTP|TestServer)

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

test: packages $(VENV) $(AXE)
	deploy/local/kafka/kafka.sh fetch
	go vet -tags e2e,faults ./...
	mkdir -p $(CACHE)/test
	failed=0
	go test -race -timeout 20m -json -skip '$(CAUSES)' $$(go list ./... | grep -vE '($(SIMULATING))$$') | tee $(CACHE)/test/unit.json | awk -f .ci/progress.awk || failed=1
	go test -timeout 20m -json ./detectors ./detectors/bank ./cmd/rewardwatch ./retrain ./retrain/experience | tee $(CACHE)/test/simulating.json | awk -f .ci/progress.awk || failed=1
	go test -timeout 20m -json -run '$(CAUSES)' ./alerts | tee $(CACHE)/test/causes.json | awk -f .ci/progress.awk || failed=1
	{ go test -race -timeout 20m -json -run '$(RACES)' ./detectors ./detectors/bank ./cmd/rewardwatch;
		go test -race -timeout 20m -json -skip '^Test(Ledger|Crashes|KilledDesk)' ./retrain;
		go test -race -timeout 20m -json -run '$(LEDGER_RACES)' ./retrain; } | tee $(CACHE)/test/races.json | awk -f .ci/progress.awk || failed=1
	go test -tags e2e -count=1 -timeout 20m -json -run '^($(E2E_TESTS))$$' $(E2E_PACKAGES) \
		| tee $(CACHE)/test/e2e.json | awk -f .ci/progress.awk || failed=1
	awk -v closing=1 -f .ci/progress.awk $(CACHE)/test/{unit,simulating,causes,races,e2e}.json || failed=1
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
