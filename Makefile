# Everything a person or a CI job runs. Each target does its own set-up: see "Needs" in README.md.
#
# The set-up has two steps. pip fetches uv (.ci/bootstrap.txt) and modules of PostgreSQL (.ci/modules.txt) by hash, then uv
# fills .venv from uv.lock, wheels only. Both hold a lock, write their stamp last and may be interrupted or started twice at once; warm they cost nothing.

SHELL := /bin/sh
.SHELLFLAGS := -euc
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
RECORDINGS ?=
AT_REST ?=

BIN := .venv/bin
# A worker takes the next longest file when it is free. By pytest-xdist's default the first worker has an eighth of all
# tests at once: in our order (tests/support/longest_first.py) those that take most of the time. Three of them share two
# cores where tests wait for processes; a fourth computes, at a low priority, while they wait.
BY_FILE := --dist=loadfile --no-loadscope-reorder
FAULTS = $(BIN)/pytest -q -s -o faulthandler_timeout=0
# Every process of a run is a new one: without compiled modules each compiles its imports, half a second of processor time.
unexport PYTHONDONTWRITEBYTECODE
export UV := $(CURDIR)/.bootstrap/uv
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON := $(PYTHON)
export UV_PYTHON_PREFERENCE := only-system

EXTRAS := aws azure gcp onprem tracing cli devcloud test
SYNC = "$$UV" sync --quiet --frozen --no-build --no-install-project --inexact
LOCKED := flock .bootstrap/lock sh -euc

.PHONY: help demo test check manifests images artifacts fmt replay operators simulate faults e2e audit site bench \
	check-format check-lint check-types check-contracts check-spelling check-unit

help: ## show this list
	@sed -n 's/^\([a-z0-9]*\):[^#]*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-9s %s\n' "$$name" "$$text"; done

demo: .venv/.synced ## the whole way from a claim to psql, on this machine
	@$(BIN)/fairlead demo

check: .venv/.synced ## format, lint, types, import contracts, spelling, unit and property tests
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target \
		check-unit check-types check-lint check-format check-contracts check-spelling
	@echo "check: all green"

test: check ## check, then the tests against a real kube-apiserver, a real PostgreSQL and a simulated RDS
	@$(BIN)/python -m devcloud.controlplane
	@$(BIN)/pytest --numprocesses=4 $(BY_FILE) \
		-m "apiserver or postgres or rds or slow"

manifests: .venv/.synced ## write install.yaml and the chart's files anew, from deploy/kustomize and crds/
	@$(BIN)/python -m devcloud.manifests

images: ## build the container images (BASE=image@sha256:...; deploy/images/build names the other variables)
	@deploy/images/build

artifacts: .venv/.synced ## write the chart and the manifests as OCI image layouts (LAYOUTS=folder)
	@$(BIN)/python -m devcloud.oci "$(or $(LAYOUTS),dist)"

fmt: .venv/.synced ## format the code and repair what can be repaired
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@$(BIN)/python -m devcloud.manifests

replay: .venv/.synced ## make recorded exchanges with real clouds again (RECORDINGS=folder)
	@if [ -z "$(RECORDINGS)" ]; then echo "replay: nothing to do: RECORDINGS names no folder"; else \
		RECORDINGS="$(abspath $(RECORDINGS))" $(BIN)/pytest -q $(wildcard tests/*/*/replay.py); fi

operators: .venv/.synced ## claims through other operators' resources (CRDS=folder with the operators' own CRDs)
	@$(BIN)/python -m devcloud.controlplane
	@OPERATOR_CRDS="$(if $(CRDS),$(abspath $(CRDS)))" $(BIN)/pytest -q tests/composer/test_operator_compositions.py \
		tests/apiserver/operators/life_matrix.py

LIVES ?= 20
SEED ?= 1
JOBS ?= 2
PROFILE ?= long
simulate: .venv/.synced ## LIVES=n lives by SEED=n, PROFILE=short or long, of composer, provider and cloud in one process on virtual time
	@$(BIN)/python -m tests.simulation --profile $(PROFILE) --lives $(LIVES) --seed $(SEED) --jobs $(JOBS)

faults: LIVES = 20000
faults: SEED = 100
faults: .venv/.synced ## 20 minutes of short lives, the contract at every moment, an end without its inputs, an uninstall, planned edits
	@$(BIN)/python -m devcloud.controlplane
	@log=$$(mktemp); failed=0; \
	$(BIN)/python -m tests.simulation --profile short --lives $(LIVES) --seed $(SEED) --jobs 2 --minutes 20 || failed=1; \
	$(FAULTS) tests/postgres/contract_matrix.py tests/providers/azure/contract_matrix.py >"$$log" 2>&1 & contract=$$!; \
	trap 'trap - TERM; kill 0' INT TERM; \
	EDITS=200 $(FAULTS) tests/simulation/test_plan.py || failed=1; \
	$(FAULTS) $(wildcard tests/system/*_matrix.py) tests/fairlead/demo_matrix.py tests/deploy/rules_matrix.py || failed=1; \
	wait $$contract || failed=1; cat "$$log"; rm "$$log"; exit $$failed

e2e: .venv/.synced ## our pods on a node, applications in pods and in Java, claims from Git by Flux and Argo CD (as root, on Debian 12; says what is to be installed)
	@command -v java >/dev/null || { \
		echo "e2e: Java is missing: apt-get install default-jre-headless libpostgresql-jdbc-java" >&2; exit 2; }
	@[ -e /usr/share/java/postgresql.jar ] || { \
		echo "e2e: PostgreSQL's JDBC driver is missing: apt-get install libpostgresql-jdbc-java" >&2; exit 2; }
	@{ command -v npm && command -v go; } >/dev/null || { \
		echo "e2e: Node or Go is missing: apt-get install npm golang" >&2; exit 2; }
	@command -v git >/dev/null || { echo "e2e: Git is missing: apt-get install git" >&2; exit 2; }
	@{ command -v buildah && command -v mmdebstrap; } >/dev/null || { \
		echo "e2e: the images cannot be built: apt-get install buildah mmdebstrap" >&2; exit 2; }
	@$(BIN)/python -m devcloud.node
	@$(BIN)/python -m devcloud.controlplane
	@$(BIN)/pytest -q -o faulthandler_timeout=0 tests/e2e/jdbc.py tests/e2e/applications.py tests/e2e/node.py tests/e2e/installed.py \
		tests/e2e/every_cloud.py tests/e2e/attacks.py tests/e2e/attacks_of_authors.py \
		tests/e2e/attacks_of_tenants.py tests/e2e/reinstalled.py \
		tests/e2e/gitops_kstatus.py tests/e2e/gitops_flux.py tests/e2e/gitops_argocd.py tests/system/helm_rollback.py

audit: .venv/.synced ## compare every locked package with the advisories that PyPI publishes (needs the network)
	@$(LOCKED) '$(SYNC) --extra audit'
	@list=$$(mktemp); trap 'rm -f "$$list"' EXIT; \
	"$$UV" export --quiet --frozen --all-extras --no-emit-project --output-file "$$list"; \
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner=off --requirement "$$list"

site: .venv/.synced ## build the pages of docs/ as a site, links checked (SITE=folder; default dist/site)
	@$(LOCKED) '$(SYNC) --extra site'
	@$(BIN)/properdocs build --quiet --strict --config-file .ci/site/properdocs.yml --site-dir "$(abspath $(or $(SITE),dist/site))"
	@echo "site: $(or $(SITE),dist/site)/index.html"

bench: .venv/.synced ## measure, and print the figures (AT_REST=1: half an hour more, 2,000 RDS instances at rest)
	@$(LOCKED) '$(SYNC) --extra bench'
	@$(BIN)/python -m benchmarks
	@if [ -n "$(AT_REST)" ]; then $(BIN)/python -m benchmarks.rds_sweep --at-rest; fi

check-format:
	@echo "check: format"; $(BIN)/ruff format --check --quiet --diff .
check-lint:
	@echo "check: lint"; $(BIN)/ruff check --quiet .
check-types:
	@echo "check: types"; $(BIN)/mypy
check-contracts:
	@echo "check: import contracts"; found=$$($(BIN)/lint-imports --no-cache --no-logo 2>&1) || { echo "$$found"; exit 1; }
check-spelling:
	@echo "check: spelling"; $(BIN)/codespell
# Without the watch over hanging tests and the records of logs, which take as long as most of the six thousand tests; a
# test run by hand has both.
check-unit:
	@echo "check: unit and property tests"; $(BIN)/pytest -q -o faulthandler_timeout=0 -p no:logging --numprocesses=2 $(BY_FILE) \
		--ignore=tests/apiserver --ignore=tests/postgres --ignore=tests/security --ignore=tests/system \
		-m "not apiserver and not postgres and not rds and not slow"

.bootstrap/uv: .ci/bootstrap.txt .ci/modules.txt
	@mkdir -p .bootstrap
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is missing or older than 3.11; see Needs in README.md, or run: make PYTHON=/path/to/python3" >&2; exit 2; }
	@$(LOCKED) 'if [ ! $@ -nt .ci/bootstrap.txt ] || [ ! $@ -nt .ci/modules.txt ]; then \
		echo "set-up: fetching uv and modules of PostgreSQL, pinned by hash"; \
		rm -rf .bootstrap/pip .bootstrap/modules; \
		$(PYTHON) -m venv .bootstrap/pip || { echo "python3-venv is missing; see Needs in README.md" >&2; exit 2; }; \
		.bootstrap/pip/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
			--only-binary :all: --require-hashes --requirement .ci/bootstrap.txt; \
		.bootstrap/pip/bin/python -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
			--ignore-requires-python --only-binary :all: --require-hashes --requirement .ci/modules.txt \
			--dest .bootstrap/modules; \
		mv .bootstrap/pip/bin/uv $@; touch $@; rm -rf .bootstrap/pip; fi'

.venv/.synced: pyproject.toml uv.lock .ci/modules.txt | .bootstrap/uv
	@$(LOCKED) 'if [ ! $@ -nt pyproject.toml ] || [ ! $@ -nt uv.lock ] || [ ! $@ -nt .ci/modules.txt ]; then \
		echo "set-up: filling .venv from uv.lock"; \
		$(SYNC) $(EXTRAS:%=--extra %); \
		"$$UV" pip install --quiet --offline --no-deps --no-build-isolation --python $(BIN)/python --editable .; \
		$(BIN)/python -m zipfile --extract .bootstrap/modules/*.whl .venv/lib/python3.*/site-packages; \
		touch $@; fi'
