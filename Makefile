# Copyright The Caldera Authors.
# SPDX-License-Identifier: Apache-2.0

# CI and developers run these targets and nothing else. Start with: make help

SHELL := bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := _output/bin
IMAGE ?= caldera-scheduler:dev
TOOL := go tool -modfile=tools/go.mod
GOVULNCHECK := v1.9.0

# Binaries are static; only the race detector needs cgo. One setting for building, vetting and linting also means that
# they share compiled packages. Without the paths of this machine in them, equal sources give equal binaries in any
# folder, and a second clone finds what the first one compiled.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
# Vetting is a check of its own (make verify). Nobody opens a test program in a debugger here, and without what debuggers
# read it is compiled and linked in two thirds of the time; stack traces and race reports do not need it.
RACE := CGO_ENABLED=1 go test -race -shuffle=on -vet=off -gcflags=all=-dwarf=false -ldflags='-s -w'

# Clients refuse a server whose version they cannot read, so every binary reports the Kubernetes version of go.mod. The
# date is fixed, so that it does not tell equal binaries apart.
# $(call kubernetes,FOLDER): the version of Kubernetes that a folder's go.mod names.
kubernetes = $(shell awk '{ for (i = 1; i < NF; i++) if ($$i == "k8s.io/kubernetes" && $$(i + 1) ~ /^v/) { print $$(i + 1); exit } }' $(1)/go.mod)
KUBE_VERSION := $(call kubernetes,.)
# $(call version_flags,VERSION) has a binary report a version of Kubernetes.
numbers = $(subst ., ,$(1:v%=%))
version_values = \
	gitVersion=$(1) \
	gitMajor=$(word 1,$(numbers)) \
	gitMinor=$(word 2,$(numbers)) \
	gitTreeState=clean \
	buildDate=2026-01-01T00:00:00Z
version_flags = $(foreach v,$(version_values),-X k8s.io/component-base/version.$(v) -X k8s.io/client-go/pkg/version.$(v))
VERSION_LDFLAGS := $(call version_flags,$(KUBE_VERSION))
export VERSION_LDFLAGS
BUILD := go build -ldflags '$(VERSION_LDFLAGS)'

# A package that links the API server takes minutes to build a second time for the race detector. Such packages are the
# local control plane, which serves the tests as a child process, and upstream's harness; their own tests run without the
# detector.
CONTROL_PLANE := k8s.io/kubernetes/cmd/kube-apiserver/app
CODE := ./cmd/... ./hack/... ./internal/... ./pkg/...
# $(call packages,CONDITION,PATTERNS): prints the packages for which the template condition holds; $$heavy: links the API server.
packages = go list -f '{{$$heavy := false}}{{range .Deps}}{{if eq . "$(CONTROL_PLANE)"}}{{$$heavy = true}}{{end}}{{end}}{{if $(1)}}{{.ImportPath}}{{end}}' $(2)

GO_DIRS := $(wildcard cmd hack internal manifests pkg test)
GENERATED := manifests/crds manifests/crds-optional docs/reference ':(glob)pkg/apis/**/zz_generated.*.go'
GENERATOR_FLAGS := --go-header-file hack/boilerplate.go.txt --output-file

.PHONY: FORCE
FORCE:

##@ Use

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

.PHONY: try
try: $(BIN)/try ## Watch gangs being scheduled on objects in memory, without an API server: the quickest first look
	@exec $(BIN)/try

.PHONY: demo
demo: $(BIN)/kube-scheduler $(BIN)/localcluster ## Start a cluster of simulated nodes and watch gangs being scheduled; KEEP=1 leaves it running
	@go build -o $(BIN)/demo ./cmd/demo
	@exec $(BIN)/demo $(if $(KEEP),--keep)

##@ Test

.PHONY: test
test: verify test-unit test-integration test-release ## Run what CI runs: all checks, unit and integration tests, and the image

.PHONY: test-unit
test-unit: ## Run the tests next to the code, with the race detector
	@# Three packages at a time: some wait while others build.
	packages=$$($(call packages,not $$heavy,$(CODE))); $(RACE) -p 3 -timeout 30m $$packages

# The page of kubectl caldera ui is tested in a real browser. On one's own machine the test is skipped where there is none. CI has none at first, and to
# skip it there would be to say that it has passed.
.PHONY: browser
browser:
	@missing=$$(command -v "$${CHROMIUM:-chromium}" chromium-browser google-chrome >/dev/null || echo chromium fonts-dejavu-core; command -v npm >/dev/null || echo npm); \
	if [[ -n $$missing && $${CI:-} == true && $$(id -u) == 0 ]] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	fi

# Tutorials are followed word for word, with the commands that their readers have.
.PHONY: commands
commands:
	cd test/chart && go build -o $(abspath $(BIN))/ helm.sh/helm/v4/cmd/helm k8s.io/kubernetes/cmd/kubectl sigs.k8s.io/kustomize/kustomize/v5

.PHONY: test-tutorials
test-tutorials: commands $(BIN)/try $(BIN)/localcluster $(BIN)/kube-scheduler $(BIN)/kubectl-caldera ## Follow the README and the tutorials word for word
	go test -count=1 -v -timeout 30m ./test/integration/tutorials

.PHONY: test-integration
test-integration: commands $(BIN)/try $(BIN)/localcluster $(BIN)/kube-scheduler $(BIN)/kubectl-caldera browser ## Run the tests on a real etcd and kube-apiserver, and those of the manifests
	packages=$$($(call packages,and $$heavy (or .TestGoFiles .XTestGoFiles),$(CODE) ./test/...)); \
	if [[ -n $$packages ]]; then go test -shuffle=on $$packages; fi
	@# Two packages at a time, as each starts clusters of its own. Four tests of each at a time: mostly they wait.
	packages=$$($(call packages,not $$heavy,./test/...)); \
	$(BINARIES) $(RACE) -p 2 -parallel 4 -timeout 40m $$packages
	$(CHART_TEST)

# Helm's library has requirements of its own, and so its tests a module of their own. Of ours nothing but tests runs in their process: to compile the library
# once more for the race detector is not worth the minutes. The files that they read are outside of their module, where a cached result does not see changes.
BINARIES := CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) \
	CALDERA_KUBECTL_CALDERA=$(abspath $(BIN)/kubectl-caldera)
CHART_TEST = cd test/chart && $(BINARIES) go test -count=1 -shuffle=on -vet=off -timeout 20m . $(CHART)

.PHONY: test-chart
test-chart: $(BIN)/localcluster $(BIN)/kube-scheduler $(BIN)/kubectl-caldera ## Test the Helm chart alone; CHART="-args -rewrite" writes what values change, and the table of values
	$(CHART_TEST)

# What ko links has requirements of its own, too. Its image is built with our own compiler, and its base comes from a registry within the test.
$(BIN)/ko: FORCE
	cd test/release && go build -o $(abspath $@) github.com/google/ko

.PHONY: test-release
test-release: $(BIN)/ko ## Make the scheduler's image by ko without a registry, and compare its bill of materials with what is linked; CALDERA_PLATFORMS=all makes all
	cd test/release && CALDERA_KO=$(abspath $(BIN)/ko) go test -count=1 -shuffle=on -vet=off -timeout 30m -v .

.PHONY: pictures
pictures: $(BIN)/localcluster $(BIN)/kube-scheduler $(BIN)/kubectl-caldera browser ## Test the page of kubectl caldera ui, that it draws 1,000 jobs within a second, too, and write pictures of it into docs/pictures
	CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) \
	CALDERA_KUBECTL_CALDERA=$(abspath $(BIN)/kubectl-caldera) go test -count=1 -timeout 30m ./test/integration/page -args -pictures -drawn-within 1s

.PHONY: test-ecosystem
test-ecosystem: $(BIN)/localcluster $(BIN)/kube-scheduler ## Run frameworks' own controllers beside the scheduler, and fetch their modules; make test does so where they are cached
	for module in trainingoperator trainer karpenter; do (cd test/integration/frameworks/$$module && go mod tidy -diff); done
	CALDERA_ECOSYSTEM=1 CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) $(RACE) -timeout 40m ./test/integration/frameworks
	CALDERA_ECOSYSTEM=1 CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) \
	$(RACE) -run TestJobsAreSuspendedByTheirOwners ./test/integration/binary

# What is left out beside older releases: Kubernetes' own gangs.
SINCE := /of_Kubernetes
SERVERS ?= $(notdir $(wildcard test/servers/*))
.PHONY: test-servers
test-servers: $(BIN)/localcluster $(BIN)/kube-scheduler $(BIN)/kubectl-caldera $(SERVERS:%=$(BIN)/control-plane-%) ## Test beside the control planes of older releases of Kubernetes; SERVERS="1.34 1.36" names them
	for release in $(SERVERS); do \
		echo "beside Kubernetes $$release"; \
		CALDERA_CONTROL_PLANE=$(abspath $(BIN))/control-plane-$$release $(BINARIES) go test -count=1 -vet=off -p 1 -timeout 40m -skip '$(SINCE)' \
			./test/integration/{binary,devices,evictions,gangs,nodes,queues,subgroups,tiers,whatif}; \
	done

$(BIN)/control-plane-%: FORCE
	@echo 'building $@: minutes the first time, seconds later'
	@cd test/servers/$* && go mod tidy -diff && go build -ldflags '$(call version_flags,$(call kubernetes,test/servers/$*))' -o $(abspath $@)/ \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager

.PHONY: soak
soak: $(BIN)/localcluster $(BIN)/kube-scheduler ## Let queues evict from each other for half an hour and judge it; SOAK="--conf capacity --seed 2" sets flags
	CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) go run ./test/soak $(SOAK)

.PHONY: perf
perf: ## Measure the workloads of upstream's scheduler_perf, and ours, against stock; PERF="--only Gangs --runs 5" sets flags
	go run ./test/perf/harness $(PERF)

.PHONY: bench
bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem ./pkg/...

.PHONY: compare
compare: ## Compare with other schedulers in whole runs; COMPARE="--nodes 1000,5000 --contenders caldera,native" sets flags, COMPARE=--help lists them
	go run ./test/perf/compare $(COMPARE)

.PHONY: growth
growth: ## Measure what grows from 1,000 to 50,000 nodes, in one process; it takes minutes, and 6 GB. GROWTH="--nodes 1000,5000" sets flags, GROWTH=--help lists them
	@mkdir -p _output
	go run ./test/perf/growth --plot _output/growth.svg $(GROWTH)

.PHONY: wait
wait: $(BIN)/localcluster $(BIN)/kube-scheduler ## Measure what work that cannot run costs others; WAIT="--row small --kinds all" sets flags, WAIT=--help lists them
	CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) go run ./test/wait $(WAIT)

.PHONY: faults
faults: ## Let the scheduler live through clusters in which everything goes wrong, in simulated time; FAULTS="--seeds 10000" sets flags
	go run ./test/faults $(FAULTS)

.PHONY: chaos
chaos: $(BIN)/localcluster $(BIN)/kube-scheduler ## Do harm between the binds of gangs and check what becomes of them; CHAOS="--troubles all --rounds 10" sets flags, CHAOS=--help lists them
	CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) go run ./test/chaos $(CHAOS)

.PHONY: standby
standby: $(BIN)/localcluster $(BIN)/kube-scheduler ## Let jobs come and go beside a scheduler that waits to lead, and judge what it keeps of them; STANDBY="--jobs 1000000 --plot FILE" sets flags
	CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) go run ./test/standby $(STANDBY)

.PHONY: upgrade
upgrade: $(BIN)/localcluster $(BIN)/kube-scheduler ## Let an earlier version and this one take the lead from each other under load, and judge it; UPGRADE="--switches 20 --from v0.1.0" sets flags
	CALDERA_LOCALCLUSTER=$(abspath $(BIN)/localcluster) CALDERA_KUBE_SCHEDULER=$(abspath $(BIN)/kube-scheduler) go run ./test/upgrade $(UPGRADE)

##@ Check

.PHONY: lint
lint: ## Check the house rules (.golangci.yaml)
	$(TOOL) golangci-lint run
	cd test/chart && go tool -modfile=../../tools/go.mod golangci-lint run
	cd test/release && go tool -modfile=../../tools/go.mod golangci-lint run

# What the API of views is described by: its own types, and those of Kubernetes' that any API has.
VIEWS := ./pkg/apis/visibility/v1alpha1
COMMON := $(addprefix k8s.io/apimachinery/pkg/,apis/meta/v1 runtime version api/resource)
comma := ,
empty :=
space := $(empty) $(empty)

.PHONY: generate
generate: ## Write generated files again: CRDs, deep copies, conversions and defaults of the plugin args, what describes the API of views, and most of docs/reference
	go run ./hack/crdgen
	$(if $(wildcard pkg/apis/config/v1),\
	$(TOOL) deepcopy-gen $(GENERATOR_FLAGS) zz_generated.deepcopy.go ./pkg/apis/config ./pkg/apis/config/v1 && \
	$(TOOL) defaulter-gen $(GENERATOR_FLAGS) zz_generated.defaults.go ./pkg/apis/config/v1 && \
	$(TOOL) conversion-gen $(GENERATOR_FLAGS) zz_generated.conversion.go ./pkg/apis/config/v1)
	$(TOOL) deepcopy-gen $(GENERATOR_FLAGS) zz_generated.deepcopy.go $(VIEWS)
	$(TOOL) openapi-gen $(GENERATOR_FLAGS) zz_generated.openapi.go --output-dir pkg/apis/visibility/openapi \
		--output-pkg github.com/caldera-scheduler/caldera/pkg/apis/visibility/openapi --output-model-name-file zz_generated.model_name.go \
		--readonly-pkg $(subst $(space),$(comma),$(COMMON)) --report-filename /dev/null $(VIEWS) $(COMMON)
	go run ./hack/reference

# Two pages tell of what links the whole scheduler. Tests that are linked with it anyway find out whether they are stale, and write them here: make generate,
# which is part of make verify, need not link it.
.PHONY: reference
reference: ## Write the pages of docs/reference again
	go run ./hack/reference
	go test -count=1 -vet=off -run TestTheReference ./pkg/scheduler/app ./cmd/kubectl-caldera -args -rewrite

.PHONY: verify
verify: verify-format verify-generated verify-modules ## Check everything but behaviour: format, generated files, modules, vet, lint
	go vet ./...
	cd test/chart && go vet ./...
	cd test/release && go vet ./...
	$(MAKE) --no-print-directory lint

.PHONY: vulnerabilities
vulnerabilities: ## Look for known weaknesses in what is called of dependencies; asks the Go vulnerability database
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./cmd/... ./pkg/...

.PHONY: verify-format
verify-format:
	@unformatted=$$(gofmt -l $(GO_DIRS)); \
	if [[ -n $$unformatted ]]; then printf 'gofmt -w is needed for:\n%s\n' "$$unformatted"; exit 1; fi

.PHONY: verify-generated
verify-generated: generate
	@changed=$$(git status --porcelain -- $(GENERATED)); \
	if [[ -n $$changed ]]; then printf 'make generate changes what is committed:\n%s\n' "$$changed"; exit 1; fi

.PHONY: verify-modules
verify-modules:
	go mod tidy -diff
	cd tools && go mod tidy -diff
	cd test/integration/prometheus/server && go mod tidy -diff
	cd test/chart && go mod tidy -diff
	cd test/release && go mod tidy -diff

##@ Build

.PHONY: build
build: $(BIN)/kube-scheduler $(BIN)/localcluster $(if $(wildcard cmd/kubectl-caldera),$(BIN)/kubectl-caldera) ## Build the binaries into _output/bin

$(BIN)/%: FORCE
	@echo 'building $@: minutes the first time, seconds later'
	@$(BUILD) -o $@ ./cmd/$*

.PHONY: site
site: ## Make a site of the documentation in _output/site
	@go run ./hack/site

.PHONY: image
image: ## Build the scheduler's image; IMAGE=name:tag names it
	@docker info >/dev/null 2>&1 || { echo 'make image needs Docker: no docker command with a running daemon was found.' >&2; exit 1; }
	docker build --tag $(IMAGE) .

.PHONY: images
images: $(BIN)/ko ## Build the scheduler's image for all platforms, with its bill of materials, and push it; KO_DOCKER_REPO=registry/name and TAG=v0.1.0 name it
	@[[ -n "$${KO_DOCKER_REPO:-}" && -n "$(TAG)" ]] || { echo 'make images needs KO_DOCKER_REPO, the name of the image, and TAG.' >&2; exit 1; }
	$(BIN)/ko build --bare --tags=$(TAG) --sbom-dir=_output ./cmd/kube-scheduler

# goreleaser itself is no part of what is compiled here: it links the clients of all clouds. Its own reader checks the file in test-release.
.PHONY: archives
archives: ## Build the archives of kubectl caldera and its manifest for krew, by a goreleaser that is installed; ARCHIVES="--snapshot" sets flags
	goreleaser release --clean $(ARCHIVES)

.PHONY: chart
chart: ## Write a package of the Helm chart into _output; CHART="--version 1.2.3 --app-version v1.2.3" says which
	cd test/chart && go run ./pack $(CHART)

.PHONY: clean
clean: ## Remove what was built
	rm -rf _output
