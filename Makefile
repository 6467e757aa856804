# Few verbs; `make` alone lists them. Programs go to bin/, which is all that the
# demo, the tests and the benchmarks need.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED := 0
export GOWORK      := off
# Nothing here is debugged with DWARF, and programs are stripped: without it a cold
# build needs two thirds of the time. For all commands, so that they share a cache.
no_dwarf           := -gcflags=all=-dwarf=false
export GOFLAGS     := $(filter-out $(no_dwarf),$(shell go env GOFLAGS)) $(no_dwarf)

MODULE   := github.com/dynamo-operator/dynamo-operator
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
DATE     ?= $(shell git log -1 --format=%cs 2>/dev/null || echo unknown)
# Where the images are, as host/path; empty if nodes have them by another way. With
# VERSION it makes every name of an image, in programs, archives and registries.
REGISTRY ?=
LDFLAGS  := -s -w -X $(MODULE)/internal/core/version.version=$(VERSION) -X $(MODULE)/internal/core/version.registry=$(REGISTRY) -X $(MODULE)/internal/core/version.commit=$(COMMIT) -X $(MODULE)/internal/core/version.date=$(DATE)

# The control plane's version is written down once, in its go.mod.
KUBERNETES    := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' localcluster/go.mod)
CLUSTER_FLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES)))

PROGRAMS := dynamo-operator dynamo-mocker dynamo-profiler dynamo-planner dynamo-activator kubectl-dynamo
SOURCES  := $(shell find api cmd config internal -name '*.go' -not -name '*_test.go' -o -path 'config/*' -name '*.yaml') go.mod
CLUSTER  := $(shell find localcluster -name '*.go' -not -name '*_test.go') localcluster/go.mod

.PHONY: help
help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(PROGRAMS:%=bin/%) bin/localcluster ## Build all programs into bin/

# What only tests and --with need: the real LeaderWorkerSet controller, and the
# definitions of other optional APIs.
.PHONY: addons
addons: bin/lws-controller bin/addons/.collected ## Build what localcluster up --with installs

# What a demo runs; nothing else is built for one.
DEMO := dynamo-operator dynamo-mocker dynamo-planner dynamo-activator kubectl-dynamo

# One build for all of them: what they share is compiled once, and one is linked
# while another is compiled. Meanwhile the modules of the local cluster are fetched.
$(DEMO:%=bin/%) &: $(SOURCES)
	@echo "building $(DEMO:%=bin/%)"
	@mkdir -p bin
	@{ test -e bin/localcluster || (cd localcluster && go list -deps ./cmd/localcluster); } >/dev/null 2>&1 & \
	  hack/build.sh bin/ '$(LDFLAGS)' $(DEMO:%=./cmd/%); wait

bin/dynamo-profiler: $(SOURCES)
	@echo "building $@"
	@mkdir -p bin
	@hack/build.sh $@ '$(LDFLAGS)' ./cmd/$(@F)

# A cold build compiles Kubernetes, once: Go's build cache keeps it by version.
bin/localcluster: $(CLUSTER)
	@echo "building $@: Kubernetes $(KUBERNETES) from source; the first time takes about ten minutes on two cores"
	@mkdir -p bin
	@cd localcluster && ../hack/build.sh ../$@ '$(CLUSTER_FLAGS)' ./cmd/localcluster
	@ln -sf localcluster bin/kubectl

# The controller pins an older Kubernetes, so it is built from a module of its own.
bin/lws-controller: localcluster/lws/go.mod
	@echo "building $@"
	@mkdir -p bin
	@cd localcluster/lws && ../../hack/build.sh ../../$@ '-s -w' sigs.k8s.io/lws/cmd

bin/addons/.collected: localcluster/collect-manifests.sh localcluster/go.mod localcluster/lws/go.mod
	@mkdir -p bin
	@localcluster/collect-manifests.sh bin/addons
	@touch $@

.PHONY: demo
demo: $(DEMO:%=bin/%) bin/localcluster ## A cluster, the operator, a graph, an answer (ONCE=1 ends after it)
	@bin/kubectl-dynamo demo $(if $(ONCE),--once)

# What the tests start is not in Go's cache of test results, hence -count=1.
# Two packages that start clusters run at a time: their tests wait for pods most of
# the time, so more of those than there are cores run at once, and with two packages
# the machine is busy and none of them starved. A test that fails is run once more by itself, and both runs
# are printed: a machine's hiccup does not hide what the other tests say, and a test
# that needs its second run is a defect to be mended. lint has vetted everything; go test
# would again, and from a cold cache all of Kubernetes that a package is made of.
run = "$$($(CURDIR)/hack/tool.sh gotestsum)" --format standard-quiet --hide-summary=skipped --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test
.PHONY: test
test: build addons lint chart-units ## Everything that has to pass: lint, charts, generated files, unit, golden and integration tests, the core of e2e
	hack/generate.sh --check
	@rm -f bin/summary.txt
	TEST_SUMMARY=$(CURDIR)/bin/summary.txt $(run) --packages="$$(go list ./... | grep -v '/test/' | tr '\n' ' ')" -- -count=1 -vet=off -timeout 20m
	go test -count=1 -vet=off -tags unguarded ./internal/operator/queue ./internal/cluster/lora ./internal/core/sanitise ./internal/core/conversion ./internal/core/topologylabel ./internal/operator/apiversion ./internal/cli/console
	PLAYGROUND_BIN=$(CURDIR)/bin TEST_SUMMARY=$(CURDIR)/bin/summary.txt $(run) --packages=./test/... -- -count=1 -vet=off -p 2 -timeout 40m -parallel 6
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -vet=off -tags unguarded -run Attack ./internal/operator/controller
	cd localcluster && LOCALCLUSTER_BIN=$(CURDIR)/bin/localcluster $(run) --packages=./... -- -count=1 -vet=off -p 2 -timeout 30m
	@touch bin/summary.txt; cat bin/summary.txt

.PHONY: e2e
e2e: build addons ## Every published graph on a local cluster, one by one, with names
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 60m -parallel 6 ./test/e2e/... -all

.PHONY: compat
compat: build addons ## Compare with the original's objects and write docs/compatibility.md
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/compat/... -write

.PHONY: rotation
rotation: build ## 1,000 admissions in 5 minutes under certificates of 60 s, and replicas replaced and killed
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/webhook -run 'TestRotation|TestReplicas|TestWithoutAConverter' -measure -failure-policy Ignore
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/webhook -run TestReplicas -measure

.PHONY: converter
converter: build ## Replace and kill all replicas of a converter under reads and writes in both versions, 5 times; then 1,000 graphs read in both
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 60m ./test/converter -rounds 5 -graphs 1000
	go test -run '^$$' -bench Largest -benchtime 2s ./internal/core/conversion

.PHONY: lora
lora: build ## 200 engines, of which 20 take 14 s and 20 fail, and a minute in which nobody is asked
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 15m ./test/model -run TestManyEngines -slow 14s -idle 60s

.PHONY: rights
rights: build addons ## All of e2e but the graphs of 2026, and webhooks, then: no right of a role unused, no request denied
	@rm -rf bin/rights
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -timeout 60m -parallel 6 ./test/e2e -all -skip TestPublishedGraphsOf2026 -rights $(CURDIR)/bin/rights
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -timeout 30m -parallel 6 ./test/webhook -rights $(CURDIR)/bin/rights
	go test -count=1 -v -run TestTheShippedRolesAreUsed ./internal/testkit/rbacaudit -usage $(CURDIR)/bin/rights

# Debian's Chromium looks at the page; it is installed if it is not there and we
# may.
.PHONY: report
report: ## Look at a profiler's report in Chromium (bin/report.png), and time 10,000 random requests
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium >/dev/null; } || { echo "make report needs Chromium: apt-get install chromium"; exit 1; }
	@mkdir -p bin
	go test -count=1 -v -run TestABrowserPaintsTheFigures ./internal/profiler/report -screenshot $(CURDIR)/bin/report.png
	go test -count=1 -v -timeout 30m -run 'TestRandomRequests|TestARequestTakes' ./internal/profiler/search -requests 10000 -measure

# axe-core looks for what keeps people out; npm brings it, at the version that is pinned.
AXE := 4.10.2
.PHONY: console
console: build ## Walk the console in Chromium, over samples and a running cluster, light and dark, wide and narrow (bin/console/*.png), and measure it with 200 graphs and 1,000 pods
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium >/dev/null; } || { echo "make console needs Chromium: apt-get install chromium"; exit 1; }
	@mkdir -p bin/console
	@test -e bin/console/axe-$(AXE).js || { command -v npm >/dev/null || { echo "make console needs npm to fetch axe-core"; exit 1; }; \
	  cd bin/console && npm pack --silent axe-core@$(AXE) >/dev/null && tar xzf axe-core-$(AXE).tgz package/axe.min.js && mv package/axe.min.js axe-$(AXE).js && rm -r package axe-core-$(AXE).tgz; }
	go test -count=1 -v -timeout 15m -run TestABrowser ./internal/cli/console -pictures $(CURDIR)/bin/console -axe $(CURDIR)/bin/console/axe-$(AXE).js
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 20m -run TestABrowser ./test/console -pictures $(CURDIR)/bin/console
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 15m -run TestManyGraphs ./test/console -many

# Debian's package brings prometheus and promtool; it is installed if it is not
# there and we may, and its service is not used.
.PHONY: observability
observability: build ## Ask a real Prometheus every query of the dashboards and alerts, about a demo
	@command -v prometheus >/dev/null || { test "$$(id -u)" = 0 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends prometheus >/dev/null; } || { echo "make observability needs Prometheus: apt-get install prometheus"; exit 1; }
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 20m ./test/observability -observe

.PHONY: writers
writers: build ## One writer at a time with the durations that are shipped: paused leaders, wrong clocks, two releases
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 40m ./test/writer -shipped

.PHONY: idle
idle: build addons ## Count the writes of an operator with 100 idle graphs, then delete them under it
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/e2e -run TestManyGraphs -idle-graphs 100 -idle-for 60s

.PHONY: memory
memory: build ## Fill a namespace with 700 Secrets and 700 ConfigMaps of 1 MiB, and measure the operator's peak
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 60m ./test/memory -measure

SEED  ?= 1
CELLS ?=

.PHONY: resilience
resilience: build addons ## Rollouts under traffic (SEED=1, CELLS=regexp of shape/orchestrator/isolation/event), rollouts that cannot progress, bad candidates, and a control plane, nodes and engines killed
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 150m ./test/resilience -measure -seed $(SEED) -cells '$(CELLS)'

.PHONY: rollouts
rollouts: ## 100,000 random rollouts against the planner's invariants, every way of small ones with two faults, its time, and 5,000 simulated analyses of each kind
	go test -count=1 -v -timeout 60m -run 'TestRandom|TestEveryWay|TestEachRule' ./internal/core/rollout/generation -seeds 100000 -deep
	go test -run '^$$' -bench Next ./internal/core/rollout/generation
	go test -count=1 -v -timeout 60m -run Candidates ./internal/core/rollout/analysis -runs 5000

FUZZTIME ?= 60s

.PHONY: fuzz
fuzz: ## Fuzz argument parsing, overlays, graphs, conversion and admission (FUZZTIME=60s each)
	go test -run '^$$' -fuzz FuzzShell -fuzztime $(FUZZTIME) ./internal/core/commandline
	go test -run '^$$' -fuzz FuzzOverlay -fuzztime $(FUZZTIME) ./internal/core/render/pod
	go test -run '^$$' -fuzz FuzzGraph -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./internal/core/render
	go test -run '^$$' -fuzz FuzzDefault -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./internal/core/crdschema
	for target in FromAlpha FromBeta ForgedPayload AnyBytes Edits Forgetful; do \
	  go test -run '^$$' -fuzz "Fuzz$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./internal/core/conversion || exit 1; done
	@for path in GraphDeployment ComponentDeployment Model Request ScalingAdapter Body; do \
	  go test -run '^$$' -fuzz "Fuzz$$path\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./internal/operator/admission; done

.PHONY: requests
requests: build addons ## From goals to graphs, estimated and measured, and load of 50 requests on each
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/e2e -run TestRequestsBecomeGraphs -measure

TRACES ?= ../shared/data/traces

.PHONY: scaling
scaling: ## Policies of scaling on sine, step and a published trace (TRACES=folder), beside their targets
	go run ./hack/scaling -traces $(TRACES)

.PHONY: scaling-e2e
scaling-e2e: build addons ## What counts seconds, on a machine that does nothing else: upstream's scenario on its published planners, replicas without a node, wakes, and a cluster beside its simulation
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 40m ./test/e2e -run 'TestPublishedPlannersFollow|TestReplicasThatNoNodeHasRoomFor' -scaling
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 20m -parallel 1 ./test/e2e -run 'TestOnABareCluster//(a_graph_sleeps|a_wake_adds)' -scaling
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 60m ./test/e2e -run 'TestAClusterIsLikeItsSimulation' -scaling -traces $(abspath $(TRACES))

# KEDA brings the clients of all clouds; so it is built for this verb alone, from a module
# of its own.
bin/keda/operator: localcluster/keda/go.mod
	@echo "building KEDA; the first time takes about ten minutes on two cores"
	@mkdir -p bin/keda/manifests
	@cd localcluster/keda && ../../hack/build.sh ../../bin/keda/ '-s -w' github.com/kedacore/keda/v2/cmd/operator github.com/kedacore/keda/v2/cmd/adapter
	@cd localcluster/keda && source="$$(go list -m -f '{{.Dir}}' github.com/kedacore/keda/v2)/config" && \
	  install -m 644 "$$source"/crd/bases/*.yaml "$$source"/rbac/role*.yaml ../../bin/keda/manifests && \
	  for file in role role_binding; do install -m 644 "$$source/metrics-server/$$file.yaml" "../../bin/keda/manifests/metrics_$$file.yaml"; done

.PHONY: keda
keda: build addons bin/keda/operator ## KEDA itself scales adapters of both versions, to zero and back
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 20m ./test/e2e -run TestKEDAScalesAdapters -keda $(CURDIR)/bin/keda

.PHONY: idle-planner
idle-planner: build addons ## Count the writes of an idle planner in 10 minutes, and what memory it holds
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/e2e -run TestAnIdlePlanner -planner-idle-for 10m

MEASUREMENTS ?= ../shared/data/measured-latency.csv
KERNELS ?= ../shared/data/h200-kernels.csv

.PHONY: perf-model
perf-model: ## Fit the performance model on MEASUREMENTS (a table of runs) and report its error
	go run ./hack/perfmodel -measurements $(MEASUREMENTS) -kernels $(KERNELS) -write internal/core/perfmodel/data

.PHONY: closed-loop
closed-loop: ## Measure the mock engine under load and hold it against the performance model
	go test -count=1 -v -timeout 30m -run ClosedLoop ./internal/mocker -measure

GRAPHS ?= 100,1000
WHOLE ?= 20

.PHONY: bench
bench: build addons ## Benchmarks against a bare client (GRAPHS=100,1000,5000); writes docs/benchmarks.md
	go run ./benchmarks -bin bin -graphs $(GRAPHS) -whole $(WHOLE) -write docs -check benchmarks/range.json
	go test -run '^$$' -bench . ./internal/core/render ./internal/profiler/search
	cd localcluster && LOCALCLUSTER_BIN=$(CURDIR)/bin/localcluster go test -count=1 -run '^$$' -bench . -benchtime 1x ./test/...

# The program can leave out what it is paced by, which the one that is shipped cannot.
.PHONY: bench-pacing
bench-pacing: build ## What each thing gains that paces the operator, in docs/benchmarks.md (GRAPHS=100,1000: 25 minutes)
	@mkdir -p bin/unguarded
	@hack/build.sh bin/unguarded/dynamo-operator '$(LDFLAGS)' -tags unguarded ./cmd/dynamo-operator
	go run ./benchmarks -bin bin -operator bin/unguarded/dynamo-operator -pacing -graphs $(GRAPHS) -write docs

FAIRNESS_GRAPHS ?= 7

.PHONY: fairness
fairness: build ## A tenant's new graph while another edits 50 times a second and a third's pods flap
	go run ./benchmarks -bin bin -fairness $(FAIRNESS_GRAPHS)

.PHONY: generate
generate: ## Regenerate what is derived from Go: deep copies, CRDs, roles
	hack/generate.sh

.PHONY: lint
lint: ## Vet, style, the direction of imports, and the workflows
	@linter=$$(hack/tool.sh golangci-lint); $$linter run ./... && cd localcluster && $$linter run --config ../.golangci.yaml ./...
	@"$$(hack/tool.sh actionlint)"

.PHONY: check
check: ## Before a commit: format, lint, generated files, unit tests
	@test -z "$$(gofmt -l api benchmarks cmd config hack internal localcluster test | tee /dev/stderr)"
	@"$$(hack/tool.sh golangci-lint)" run ./...
	hack/generate.sh --check
	go test $$(go list ./... | grep -v '/test/')

# The race detector needs cgo, and a C compiler that Debian's gcc brings. Server tests
# start the operator as a process: it is one with the detector, and what that finds is in
# files, since tests do not fail for what a process of theirs prints.
.PHONY: race
race: build addons ## Unit, chaos and server tests under the race detector
	@command -v gcc >/dev/null || { test "$$(id -u)" = 0 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev >/dev/null; } || { echo "make race needs a C compiler: apt-get install gcc libc6-dev"; exit 1; }
	CGO_ENABLED=1 go test -race -count=1 -timeout 40m $$(go list ./... | grep -v '/test/')
	@rm -rf bin/race && mkdir -p bin/race/bin bin/race/found
	@find $(CURDIR)/bin -mindepth 1 -maxdepth 1 ! -name race ! -name dynamo-operator -exec ln -s -t bin/race/bin {} +
	CGO_ENABLED=1 go build -race -o bin/race/bin/dynamo-operator ./cmd/dynamo-operator
	@export CGO_ENABLED=1 GORACE=log_path=$(CURDIR)/bin/race/found/race PLAYGROUND_BIN=$(CURDIR)/bin/race/bin; failed=0; \
	  go test -race -count=1 -p 1 -timeout 40m ./test/chaos ./test/server || failed=1; \
	  if cat bin/race/found/* 2>/dev/null; then failed=1; fi; exit $$failed

# Static programs for two platforms as OCI archives: no Docker, same bytes each time.
IMAGES = go run ./hack/images --out dist/images --registry '$(REGISTRY)' --version '$(VERSION)' --commit '$(COMMIT)' --date '$(DATE)' --ldflags '$(LDFLAGS)'

.PHONY: images
images: ## Write the images as OCI archives into dist/images (REGISTRY=host/path names them)
	@$(IMAGES)

.PHONY: push
push: ## Write the images and push them, without Docker (REGISTRY=host/path, credentials as docker login keeps them)
	@$(IMAGES) --push

KUBECTL ?= bin/kubectl
PROGRAM ?= dynamo-operator
IMAGE   ?= $(if $(REGISTRY),$(REGISTRY)/)$(PROGRAM):$(VERSION)

.PHONY: run
run: build ## Run the operator here, against the cluster of KUBECONFIG
	bin/dynamo-operator --log-format=text

.PHONY: watch
watch: build ## As run, built and started again whenever a source changes (ARGS= are the operator's)
	hack/watch.sh $(ARGS)

.PHONY: install
install: build ## Install the definitions into the cluster of KUBECONFIG
	$(KUBECTL) apply --server-side --force-conflicts -k config/crd

.PHONY: uninstall
uninstall: build ## Remove the definitions, and with them every graph
	$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: build ## Install definitions and operator, with the images of REGISTRY and VERSION or those beside IMAGE
	bin/kubectl-dynamo install --image $(IMAGE)

.PHONY: undeploy
undeploy: build ## Remove the operator; graphs go on serving
	bin/kubectl-dynamo uninstall

.PHONY: docker-build
docker-build: ## Build an image with Docker (PROGRAM=dynamo-operator, IMAGE=...)
	docker build --target $(PROGRAM) --build-arg PROGRAM=$(PROGRAM) --build-arg VERSION='$(VERSION)' --build-arg COMMIT='$(COMMIT)' --build-arg DATE='$(DATE)' --build-arg LDFLAGS='$(LDFLAGS)' -t $(IMAGE) .

.PHONY: docker-push
docker-push: ## Push it
	docker push $(IMAGE)

.PHONY: chart-units
chart-units: ## Lint the charts and run their unit tests, without a cluster
	@helm=$$(hack/tool.sh helm); $$helm lint --quiet charts/crds charts/platform
	@unittest=$$(hack/tool.sh helm-unittest); $$unittest charts/platform

.PHONY: charts
charts: build chart-units ## Test the charts against the real Helm and a real API server, value by value
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 30m ./test/chart/...

.PHONY: installs
installs: build addons ## Helm, Kustomize and the command line, for a cluster and for a namespace, from installation to the end
	PLAYGROUND_BIN=$(CURDIR)/bin go test -count=1 -v -timeout 40m ./test/install -run TestEveryWayToInstall -all

.PHONY: clean
clean: ## Remove what was built, and the data of the demo's and the local cluster
	rm -rf bin dist .localcluster .localcluster-demo
