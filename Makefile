# `make test` and `make demo` fetch what they need. Downloads go to .cache/; only Debian packages are installed outside.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

CACHE := $(CURDIR)/.cache

# As what is released is built, so that lint, tests, servers of tests, packages and image compile each package once.
export CGO_ENABLED := 0
export GOFLAGS += -trimpath

# The Go of `toolchain` in go.mod, which is fetched where the installed one is older, whatever the environment says. All is
# built with it, tools as well. `make GOTOOLCHAIN=local` takes the installed one. `make clean` needs none.
ifneq ($(MAKECMDGOALS),clean)
ifneq ($(origin GOTOOLCHAIN),command line)
INSTALLED_GO := $(shell GOTOOLCHAIN=local go env GOVERSION)
NEEDED_GO := $(shell GOTOOLCHAIN=auto go env GOVERSION)
$(if $(NEEDED_GO),,$(error The Go of go.mod cannot be fetched. make GOTOOLCHAIN=local takes the installed one, whose standard library may have known holes))
export GOTOOLCHAIN := $(if $(filter $(INSTALLED_GO),$(NEEDED_GO)),auto,$(NEEDED_GO)+auto)
endif
endif

# renovate: datasource=go depName=github.com/golangci/golangci-lint/v2
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)

# The newest version whose dependencies the module proxy has.
# renovate: datasource=go depName=github.com/vale-cli/vale/v3
VALE_VERSION := v3.22.0
VALE := $(CACHE)/bin/vale-$(VALE_VERSION)

# renovate: datasource=go depName=gotest.tools/gotestsum
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM := $(CACHE)/bin/gotestsum-$(GOTESTSUM_VERSION)

BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
BENCHSTAT := $(CACHE)/bin/benchstat-$(BENCHSTAT_VERSION)

# renovate: datasource=go depName=golang.org/x/vuln
GOVULNCHECK_VERSION := v1.9.0
GOVULNCHECK := $(CACHE)/bin/govulncheck-$(GOVULNCHECK_VERSION)

# The Go vulnerability database, which is also a module, and the program that makes an index of it.
# renovate: datasource=go depName=golang.org/x/vulndb
ADVISORIES_VERSION := v0.0.0-20261105234957-e22db6528018
INDEXDB := $(CACHE)/bin/indexdb-$(ADVISORIES_VERSION)

PYTHON_REQUIREMENTS := ingest/emitters/python/requirements.txt
VENV := $(CACHE)/venv/.complete

# The libraries that learn, which need torch.
AGENTS_REQUIREMENTS := ingest/emitters/python/requirements-agents.txt
AGENTS_VENV := $(CACHE)/venv-agents/.complete

PEERS_REQUIREMENTS := detectors/peers/requirements.txt
PEERS_VENV := $(CACHE)/venv-peers/.complete

PIPELINE_REQUIREMENTS := retrain/pipeline/requirements.txt
PIPELINE_VENV := $(CACHE)/venv-pipeline/.complete
AIRFLOW_REQUIREMENTS := retrain/pipeline/requirements-airflow.txt
AIRFLOW_VENV := $(CACHE)/venv-airflow/.complete

# renovate: datasource=go depName=github.com/rhysd/actionlint
ACTIONLINT_VERSION := v1.7.12
ACTIONLINT := $(CACHE)/bin/actionlint-$(ACTIONLINT_VERSION)

# The first Alertmanager with receivers for workflows of Microsoft Teams; Debian's is older.
# renovate: datasource=go depName=github.com/prometheus/alertmanager
ALERTMANAGER_VERSION := v0.28.1
ALERTMANAGER := $(CACHE)/bin/alertmanager-$(ALERTMANAGER_VERSION)

# The newest version whose dependencies the module proxy has.
# renovate: datasource=go depName=github.com/goreleaser/nfpm/v2
NFPM_VERSION := v2.43.0
NFPM := $(CACHE)/bin/nfpm-$(NFPM_VERSION)

# renovate: datasource=go depName=github.com/CycloneDX/cyclonedx-gomod
CYCLONEDX_VERSION := v1.10.0
CYCLONEDX := $(CACHE)/bin/cyclonedx-gomod-$(CYCLONEDX_VERSION)

HELM_VERSION := v3.22.0
HELM := $(CACHE)/bin/helm-$(HELM_VERSION)

# The newest version for this version of Go.
KUSTOMIZE_VERSION := v5.8.1
KUSTOMIZE := $(CACHE)/bin/kustomize-$(KUSTOMIZE_VERSION)

# The newest version that the module proxy has with its definitions of ServiceMonitor and PrometheusRule.
OPERATOR_VERSION := v0.93.1
OPERATOR := $(CACHE)/prometheus-operator/.$(OPERATOR_VERSION)

# Of the packages. Nothing is released yet, so a commit is newer than the one before by its time.
VERSION ?= 0.0.0~$(shell git log -1 --format=%cd --date=format:%Y%m%d%H%M%S).$(shell git rev-parse --short HEAD)

# A build of a release says its version. Others say the commit, as Go does.
NAMED = $(if $(filter 0.0.0~%,$(VERSION)),,-X=github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app.version=v$(VERSION))

AXE_LOCK := cmd/rewardwatch/internal/console/e2e/axe/package-lock.json
AXE := $(CACHE)/axe/.complete

GRAFANA_DATA_LOCK := dashboards/draw/package-lock.json
GRAFANA_DATA := $(CACHE)/grafana-data/.complete

# The components of Grafana, of 460 MB, which only pictures of dashboards need.
GRAFANA_UI_LOCK := dashboards/picture/package-lock.json
GRAFANA_UI := $(CACHE)/grafana-ui/.complete

FUZZ_FILES = $(shell grep -rlE '^func Fuzz' --include='*_test.go' $(FOLDERS))
FUZZTIME ?= 30s

# The service under load while everything around it fails, and for how long it holds out: not part of `make test`, which has
# the kills in a short form.
KILLS ?= 100
DURATION ?= 20m

.PHONY: build linux-packages image chart python-package release release-directory demo test test-code test-race test-simulations test-e2e test-kubernetes test-dashboards test-quick test-faults test-python-agents soak lint advisories prose tour bench bench-throughput bench-latency bench-restart bench-first-start bench-sustained bench-growth bench-compare bench-detection bench-causes bench-learning bench-learning-python peers ks-table fuzz axe grafana-data kafka kafka-stop packages clean

build:
	go build -trimpath -buildvcs=auto -ldflags='-s -w $(NAMED)' -o bin/ ./cmd/rewardwatch ./cmd/rewardwatch-demo-broker

# Debian and RPM packages of the service, in OUT. Build them with `make linux-packages`.
OUT ?= bin
linux-packages: build $(NFPM)
	deploy/package/contents.sh bin
	mkdir -p $(OUT)
	for packager in deb rpm; do
		VERSION='$(VERSION)' GOARCH=$$(go env GOARCH) $(NFPM) package --config deploy/package/nfpm.yaml --packager $$packager --target $(OUT)/
	done

# The container image of the service for ARCHS, in OUT.
ARCHS ?= amd64 arm64
image: | packages
	ARCHS='$(ARCHS)' VERSION='$(VERSION)' NAMED='$(NAMED)' deploy/image/build.sh $(OUT)/rewardwatch-image.tar

# The Helm chart, in OUT.
chart: $(HELM)
	mkdir -p $(OUT)
	$(HELM) package $(CHART_VERSION) deploy/helm/rewardwatch --destination $(OUT)/

# The source distribution and the wheel of the Python package, in OUT.
python-package: $(VENV)
	deploy/package/python.sh $(CACHE)/venv/bin/python $(OUT)

# All that a release consists of, with bills of materials and checksums, in a new directory of its own. With SIGNING_KEY, gpg
# signs the checksums. It publishes nothing.
SIGNING_KEY ?=
release: OUT = bin/release/$(VERSION)
release: CHART_VERSION = --version $(VERSION) --app-version $(VERSION)
release: release-directory linux-packages image chart python-package $(CYCLONEDX)
	OLDEST_GO=$$(sed -n 's/^toolchain //p' go.mod) VERSION='$(VERSION)' CYCLONEDX=$(CYCLONEDX) SIGNING_KEY='$(SIGNING_KEY)' deploy/package/release.sh $(OUT) $(ARCHS:%=bin/image/linux/%/rewardwatch)

release-directory:
	rm -rf bin/release/$(VERSION)

demo: build
	bin/rewardwatch demo

# A line for each package while it runs; at the end the tests that were skipped or failed, with what they said, and a count of each.
# `make lint` vets all code, so the tests do not. Nothing debugs their binaries, so they are linked without what that needs.
GO_TEST := $(GOTESTSUM) --no-color --format-icons text --format-hide-empty-pkg -- -timeout 40m -vet=off -ldflags=-w

FOLDERS := alerts cmd dashboards deploy detectors ingest retrain
packages_of = $(addprefix ./,$(sort $(dir $(1))))

# The packages with tests of a name: those without are not built.
packages_with = $(call packages_of,$(shell grep -rl --include='*_test.go' '^func $(1)' $(FOLDERS)))

# The packages with tests of real servers. Those that take longest begin first, so that no core waits for them at the end.
LONGEST := ./cmd/rewardwatch/e2e/ ./cmd/rewardwatch/internal/console/e2e/ ./retrain/ ./cmd/rewardwatch/internal/cli/ ./deploy/ ./retrain/pipeline/
SERVERS = $(LONGEST) $(filter-out $(LONGEST),$(call packages_with,TestE2E))

# Every test but simulations, once and without the race detector. Tests of real servers mostly wait, so the others run beside
# them. Goes on where one kind fails, and each of the two prints all that it says at its end.
test:
	$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target test-code test-e2e

test-code: $(GOTESTSUM) | packages
	$(GO_TEST) -p 2 -parallel 4 -skip '^TestSim' $(filter-out $(SERVERS),$(call packages_of,$(shell find $(FOLDERS) -name '*_test.go')))

# All tests of these packages, so that each is built once.
test-e2e: $(GOTESTSUM) $(VENV) $(PIPELINE_VENV) $(AIRFLOW_VENV) $(ACTIONLINT) $(ALERTMANAGER) $(NFPM) $(CYCLONEDX) $(GOVULNCHECK) $(INDEXDB) $(HELM) $(KUSTOMIZE) $(OPERATOR) $(AXE) $(GRAFANA_DATA) | packages
	deploy/local/kafka/kafka.sh fetch
	deploy/local/keycloak/keycloak.sh fetch
	$(GO_TEST) -tags e2e -count=1 -p 5 -parallel 4 -skip '^TestSim' $(SERVERS)

# The packages that start goroutines or have locks, in their code or their tests: others have no race.
CONCURRENT = $(call packages_of,$(shell grep -rlE --include='*.go' '^[[:space:]]*go [a-z]|[.]Go[^a-zA-Z]|"sync"|"sync/atomic"|httptest[.]New|AfterFunc' $(FOLDERS)))

# SQLite, which was translated from C, would take four times as long under the detector, and gonum and regular expressions
# several times as long. Their races are not ours.
NO_DETECTOR = -gcflags='modernc.org/...=-race=false' -gcflags='gonum.org/...=-race=false' -gcflags='regexp=-race=false'

# Three packages at once, and four of the tests of a package that may run beside each other: many do little but wait.
# Not part of `make test`: .ci/run adds it.
test-race: export CGO_ENABLED = 1
test-race: $(GOTESTSUM) | packages
	$(GO_TEST) -race $(NO_DETECTOR) -p 3 -parallel 4 -skip '^TestSim' $(CONCURRENT)

# Not part of `make test`: .ci/run adds it.
test-simulations: $(GOTESTSUM)
	$(GO_TEST) -run '^TestSim' $(call packages_with,TestSim)

# Jobs on a real API server of Kubernetes, whose build takes 9 minutes of CPU. Not part of `make test`: .ci/run adds it.
test-kubernetes: $(GOTESTSUM) $(HELM) | packages
	deploy/local/kubernetes/kubernetes.sh fetch
	$(GO_TEST) -tags kubernetes -count=1 -run '^TestKubernetes' $(call packages_with,TestKubernetes)

# For while working: no race detector, and no test that takes long. What is left mostly waits, so much of it runs at once.
test-quick: $(GOTESTSUM)
	$(GO_TEST) -short -p 4 -parallel 8 -skip '^TestSim' ./...

test-faults: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,faults -count=1 -timeout 2h -run '^TestFaults$$' -v ./cmd/rewardwatch/e2e -args -kills $(KILLS)
	go test -count=1 -timeout 1h -run '^TestSimKilledServiceWithoutKafkaFindsTheSame$$' -v ./cmd/rewardwatch/internal/cli -args -local-kills $(KILLS)
	go test -count=1 -timeout 1h -run '^TestCrashes$$' -v ./retrain -args -crash-requests 10000 -crashes $(KILLS)
	go test -tags e2e -count=1 -timeout 1h -run '^TestE2EPostgreSQL$$/^Crashes$$' -v ./retrain -args -crash-requests 10000 -crashes $(KILLS)

# The Python package and generated pipelines with the libraries that learn, which take 6 GB of .cache/.
test-python-agents: $(AGENTS_VENV) | packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,agents -count=1 -timeout 1h -run '^TestPythonAgents' -v ./cmd/rewardwatch/e2e
	go test -tags agents -count=1 -timeout 1h -run '^TestGeneratedTraining' -v ./retrain/pipeline

soak: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,faults -count=1 -timeout 0 -run '^TestSoak$$' -v ./cmd/rewardwatch/e2e -args -soak $(DURATION)

lint: $(GOLANGCI) $(VALE)
	go vet -tags e2e,faults,agents,kubernetes,throughput,benchdetection,tour ./...
	go mod tidy -diff
	$(GOLANGCI) run ./...
	git ls-files -z '*.md' '*.go' | xargs -0 $(VALE) --minAlertLevel=error

# Known vulnerabilities that reach what is shipped, by the database of ADVISORIES_VERSION. deploy/lint/advisories.txt has those
# that do no harm.
advisories: $(GOVULNCHECK) $(INDEXDB)
	module=$$($(DOWNLOAD) golang.org/x/vulndb@$(ADVISORIES_VERSION) | $(DIRECTORY))
	GOVULNCHECK=$(GOVULNCHECK) INDEXDB=$(INDEXDB) deploy/lint/advisories.sh "$$module/data/osv" deploy/lint/advisories.txt ./cmd/...

# What Vale says of the prose, with warnings such as long sentences, which do not fail.
prose: $(VALE)
	$(VALE) --no-exit README.md CONTRIBUTING.md CHANGELOG.md docs

bench:
	go test -run '^$$' -bench . -benchmem ./...

# What reading and judging costs, as a ratio to a loop that only reads the same topics from a real broker, for each number of
# GROUPS and each kind of TRAFFIC (a regular expression). EVENTS are those of the steady state. Fleets of more groups than
# CALIBRATED (1,000 too) get copies of the baselines of twenty groups, and no row of calibration: at 119 ms of CPU each,
# 1,000 groups calibrate for two minutes and 20,000 for 40. docs/throughput.txt holds the results of the last release; with five
# ROUNDS or more, bench-compare says which differences from it are not chance.
GROUPS ?= 20,1000
TRAFFIC ?= .
EVENTS ?= 2000000
CALIBRATED ?= 20
ROUNDS ?= 1
THROUGHPUT := $(CACHE)/throughput.txt
bench-throughput: $(PEERS_VENV) | packages
	deploy/local/kafka/kafka.sh fetch
	rm -f $(THROUGHPUT)
	go test -tags e2e,throughput -count=$(ROUNDS) -timeout 0 -run '^TestThroughput$$' -v ./cmd/rewardwatch/e2e \
		-args -groups '$(GROUPS)' -traffic '$(TRAFFIC)' -events $(EVENTS) -calibrated $(CALIBRATED) -result $(THROUGHPUT) |
		sed -uE '/^(=== (RUN|NAME)|PASS$$| *--- PASS|ok )/d'

# From an event to the webhook of the drift that it proves.
bench-latency: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,throughput -count=1 -timeout 0 -run '^(TestLatency|TestGuardLatency)$$' -v ./cmd/rewardwatch/e2e -args -events $(EVENTS) |
		sed -uE '/^(=== (RUN|NAME)|PASS$$| *--- PASS|ok )/d'

# A restart, and the end of one of two instances, with RESTART groups.
RESTART ?= 10000
bench-restart: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,throughput -count=1 -timeout 0 -run '^(TestRestart|TestTakeOver)$$' -v ./cmd/rewardwatch/e2e -args -restart-groups $(RESTART) |
		sed -uE '/^(=== (RUN|NAME)|PASS$$| *--- PASS|ok )/d'

# The first start of FIRST groups that all fill their baselines at the same time.
FIRST ?= 10000
bench-first-start: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,throughput -count=1 -timeout 0 -run '^TestFirstStart$$' -v ./cmd/rewardwatch/e2e -args -first-start-groups $(FIRST) |
		sed -uE '/^(=== (RUN|NAME)|PASS$$| *--- PASS|ok )/d'

# What the service holds while RATE one-step decisions a second arrive for LONG.
RATE ?= 100000
LONG ?= 10m
bench-sustained: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,throughput -count=1 -timeout 0 -run '^TestSustained$$' -v ./cmd/rewardwatch/e2e -args -rate $(RATE) -duration $(LONG) |
		sed -uE '/^(=== (RUN|NAME)|PASS$$| *--- PASS|ok )/d'

# What a one-step decision costs against streams, partitions and processes, up to LARGEST groups: docs/growth.txt and its plot.
LARGEST ?= 20000
SMALLEST ?= 2
GROWTH ?= $(CURDIR)/docs
bench-growth: packages
	deploy/local/kafka/kafka.sh fetch
	go test -tags e2e,throughput -count=1 -timeout 0 -run '^TestGrowth$$' -v ./cmd/rewardwatch/e2e \
		-args -smallest $(SMALLEST) -largest $(LARGEST) -events $(EVENTS) -growth '$(GROWTH)' |
		sed -uE '/^(=== (RUN|NAME)|PASS$$| *--- PASS|ok )/d'

bench-compare: $(BENCHSTAT)
	$(BENCHSTAT) docs/throughput.txt $(THROUGHPUT)

# The tables of docs/detection-measured.md, docs/outcomes.md and docs/gates.md, and how long each took; more BASELINES and RUNS make them more exact. TABLES chooses some by
# the names of their tests without TestBench, such as TABLES=Promise or TABLES='(Delay|Season)'. Those of the Python packages
# are printed where `make peers` has installed them.
BASELINES ?= 20
RUNS ?= 2000
TABLES ?=
TABLES_ALONE = sed -unE 's/^--- PASS: TestBench(.*) \((.*)s\)$$/\n\1 took \2 s./; /^(=== RUN|PASS$$|testing: warning)/d; p'
bench-detection:
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./detectors -args -runs $(RUNS) | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./detectors/rarity | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./detectors/bank -args -baselines $(BASELINES) | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./retrain/expectation -args -runs $(RUNS) | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBench$(TABLES)' -v ./alerts | $(TABLES_ALONE)

# The table of causes by the laws of steps in docs/causes.md, over all recordings of a directory. Episodes of Gymnasium are
# recorded once.
RECORDINGS ?= $(CACHE)/recordings
SEEDS ?= 1 2 3
bench-causes: $(VENV)
	$(CACHE)/venv/bin/python -W ignore detectors/factor/testdata/recordings.py $(RECORDINGS) $(SEEDS)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBenchCauses$$' -v ./detectors/factor -args -recorded $(RECORDINGS) | $(TABLES_ALONE)

# The tables of docs/learning.md. Agents of Stable-Baselines3 are recorded once, which takes half an hour of one core.
LEARNERS ?= $(CACHE)/learners
LEARNER_SEEDS ?= 1 2 3 4 5
bench-learning-python: build $(AGENTS_VENV)
	OMP_NUM_THREADS=1 PYTHONPATH=ingest/emitters/python $(CACHE)/venv-agents/bin/python -W ignore \
		ingest/emitters/python/benchmarks/learners.py $(LEARNERS) --seeds $(LEARNER_SEEDS) --judge bin/rewardwatch
bench-learning:
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBenchLearning' -v ./alerts | $(TABLES_ALONE)
	go test -tags benchdetection -count=1 -timeout 0 -run '^TestBenchCoordinates$$' -v ./detectors/bank | $(TABLES_ALONE)

peers: $(PEERS_VENV)

# The thresholds of the sliding Kolmogorov-Smirnov detector, detectors/kstabledata.go: about 15 minutes of one core.
ks-table:
	go generate ./detectors

# The pictures of docs/tour.md, as Chromium shows the pages, and the panels of dashboards.
tour: $(GRAFANA_UI) | packages
	go test -tags e2e -count=1 -run '^TestE2ETour$$' -v ./cmd/rewardwatch/internal/console/e2e -args -pictures $(CURDIR)/docs/pictures
	go test -tags e2e,tour -count=1 -run '^TestTourOfDashboards$$' -v ./dashboards -args -pictures $(CURDIR)/docs/pictures
	go test -count=1 -run '^TestTerminalOfTheTour$$' ./cmd/rewardwatch/internal/cli -update

# Every dashboard with all rows open, on three screens and in both themes: texts that are cut or collide fail. PICTURES is a
# directory for the pictures.
PICTURES ?=
test-dashboards: $(GRAFANA_UI) | packages
	go test -tags e2e,tour -count=1 -timeout 60m -run '^TestWholeDashboards$$' -v ./dashboards -args -pictures '$(PICTURES)'

# An input that reaches new code is made smaller ten times only: by default that takes a minute for each.
fuzz:
	targets=0
	for file in $(FUZZ_FILES); do
		for name in $$(grep -oE '^func Fuzz[A-Za-z0-9_]+' $$file | cut -c6-); do
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$(dirname $$file)
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

# Grafana's own field logic, by which a test of the dashboards says what they show.
grafana-data: $(GRAFANA_DATA)

packages:
	deploy/local/packages.sh

clean:
	for server in kafka/kafka keycloak/keycloak kubernetes/kubernetes prometheus alertmanager postgresql; do deploy/local/$$server.sh stop; done
	rm -rf bin $(CACHE)

$(GOLANGCI):
	GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/bin/golangci-lint $@

# Its parsers of comments are in C.
$(VALE): export CGO_ENABLED = 1
$(VALE): | packages
	GOBIN=$(CACHE)/bin go install github.com/vale-cli/vale/v3/cmd/vale@$(VALE_VERSION)
	mv $(CACHE)/bin/vale $@

$(GOTESTSUM):
	GOBIN=$(CACHE)/bin go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(CACHE)/bin/gotestsum $@

$(GOVULNCHECK):
	GOBIN=$(CACHE)/bin go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(CACHE)/bin/govulncheck $@

$(INDEXDB):
	GOBIN=$(CACHE)/bin go install golang.org/x/vulndb/cmd/indexdb@$(ADVISORIES_VERSION)
	mv $(CACHE)/bin/indexdb $@

$(ACTIONLINT):
	GOBIN=$(CACHE)/bin go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	mv $(CACHE)/bin/actionlint $@

$(NFPM):
	GOBIN=$(CACHE)/bin go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	mv $(CACHE)/bin/nfpm $@

$(CYCLONEDX):
	GOBIN=$(CACHE)/bin go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)
	mv $(CACHE)/bin/cyclonedx-gomod $@

$(HELM):
	GOBIN=$(CACHE)/bin go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv $(CACHE)/bin/helm $@

$(KUSTOMIZE):
	GOBIN=$(CACHE)/bin go install sigs.k8s.io/kustomize/kustomize/v5@$(KUSTOMIZE_VERSION)
	mv $(CACHE)/bin/kustomize $@

$(OPERATOR):
	rm -rf $(@D)
	mkdir -p $(@D)
	module=$$($(DOWNLOAD) github.com/prometheus-operator/prometheus-operator@$(OPERATOR_VERSION) | $(DIRECTORY))
	for kind in servicemonitors prometheusrules; do
		install -m 644 $$module/example/prometheus-operator-crd/monitoring.coreos.com_$$kind.yaml $(@D)/$$kind.yaml
	done
	touch $@

$(ALERTMANAGER):
	GOBIN=$(CACHE)/bin go install github.com/prometheus/alertmanager/cmd/{amtool,alertmanager}@$(ALERTMANAGER_VERSION)
	mv $(CACHE)/bin/amtool $(CACHE)/bin/amtool-$(ALERTMANAGER_VERSION)
	mv $(CACHE)/bin/alertmanager $@

$(BENCHSTAT):
	GOBIN=$(CACHE)/bin go install golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION)
	mv $(CACHE)/bin/benchstat $@

$(VENV): $(PYTHON_REQUIREMENTS)
$(AGENTS_VENV): $(AGENTS_REQUIREMENTS)
$(PEERS_VENV): $(PEERS_REQUIREMENTS)
$(PIPELINE_VENV): $(PIPELINE_REQUIREMENTS)
$(AIRFLOW_VENV): $(AIRFLOW_REQUIREMENTS)
$(VENV) $(AGENTS_VENV) $(PEERS_VENV) $(PIPELINE_VENV) $(AIRFLOW_VENV): | packages
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(AXE): $(AXE_LOCK)
$(GRAFANA_DATA): $(GRAFANA_DATA_LOCK)
$(GRAFANA_UI): $(GRAFANA_UI_LOCK)
$(AXE) $(GRAFANA_DATA) $(GRAFANA_UI): | packages
	rm -rf $(@D)
	mkdir -p $(@D)
	cp $(dir $<)package.json $< $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --silent
	touch $@

# Of a module, where it is.
DOWNLOAD = GOFLAGS=-mod=mod go mod download -json
DIRECTORY = sed -n 's/.*"Dir": "\(.*\)".*/\1/p'

.ONESHELL:
