# Every recipe a person needs; `make help` lists them.
SHELL := /bin/bash
# The distribution's Python, where it will do: it is built with profiles of itself, and the tests take a tenth less of a
# processor than with one that a version manager compiled.
PYTHON ?= $(or $(shell /usr/bin/python3 -c 'import ensurepip, sys; sys.version_info < (3, 11) or print(sys.executable)' 2>/dev/null),python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Those that need nothing but this tree; targets and ablation ask for a folder of traces.
BENCHMARKS := agent agents decide simulate wake
UV_VERSION := 0.13.8
ARGS ?=
SLOW := spark or e2e or install or browser or field
ONLY_SLOW := browser e2e install
FAST_TESTS := -m "not proof and not ($(SLOW))" $(ONLY_SLOW:%=--ignore=tests/%)
# The tests begin a thousand Pythons: what one has compiled, the others need not.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install api demo test scripts check quick web field proof proof-field proof-queues screenshots format lint types contracts compiled classes fast docs docs-run docs-links proto proto-check bench wheel release image clean

help: ## list the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

install: $(INSTALLED) ## set up .venv with every extra and the tests' needs (skipped when up to date)

# The last two are what headway.client is generated of.
$(INSTALLED): pyproject.toml uv.lock docs/reference/openapi.json tools/build_client.py
	@echo "headway: installing into $(VENV); the first time takes two to four minutes (PySpark is built from its source archive)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "headway: Python 3.11 or later is needed, '$(PYTHON)' is older or not there; name another one: make install PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/uv || $(PYTHON) -m venv --clear $(VENV) \
	  || { echo "headway: '$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) \
	  || { echo "headway: pip could not install uv $(UV_VERSION); is a package index within reach?" >&2; exit 1; }
	@UV_PROJECT_ENVIRONMENT=$(VENV) UV_HTTP_TIMEOUT=180 $(BIN)/uv sync --frozen --all-extras --compile-bytecode \
	  || { echo "headway: uv could not install what uv.lock names, for the reason above; where the package index has to be a mirror, set UV_DEFAULT_INDEX" >&2; exit 1; }
	@touch $(INSTALLED)

api: install ## docs/reference/openapi.json from the routes, headway.client from it, and the schemas of files
	@$(BIN)/python -m headway.control.http.openapi docs/reference/openapi.json
	@$(BIN)/python -m headway.cli.setup.file_schemas docs/reference
	@$(MAKE) --no-print-directory install

demo: install ## the whole of Headway on this machine, with real jobs (ARGS="--for 90s --no-browser")
	@$(BIN)/headway demo $(ARGS)

test: install ## every kind of test once, small seeds (15 minutes at most)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target classes types lint contracts proto-check web compiled
	@$(BIN)/pytest -m "not proof and not field" --numprocesses auto --dist loadgroup --durations 25 $(ARGS)

scripts: install ## every script of benchmarks/ and tools/ at its smallest size (10 minutes at most; ARGS="benchmarks/wake.py" for one)
	@$(BIN)/python tools/smallest_runs.py $(ARGS)

check: install ## format, lint, types, contracts and the fast tests (3 minutes at most)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target types lint contracts proto-check web compiled
	@$(MAKE) --no-print-directory fast

quick: install ## lint, types, and the tests of what changed since main: a minute at most
	@$(BIN)/python tools/quick.py

field: install ## long jobs of 18 kinds of workers while pools shrink, and waits beside those of an application's log (6 minutes at most)
	@$(BIN)/pytest -m field --numprocesses 2 --dist loadfile --durations 3 $(ARGS) tests/field

proof: install ## kills, soaks and storms (ARGS="--proof-minutes 60"); resumable, figures go to tests/proof/results/
	@HYPOTHESIS_PROFILE=searching $(BIN)/pytest --timeout=0 -m "proof or not proof" $(ARGS) tests/proof tests/scaling

proof-field: install ## the same of every kind of worker, 15 times `up`; resumable, writes docs/proofs/field.md (90 minutes)
	@$(BIN)/pytest --timeout=0 -m proof --proof-minutes 1000 $(ARGS) tests/proof/test_field.py tests/field

proof-queues: install ## twenty stories of 300 moves a library; every source against every fault of its broker; bursts of every library
	@$(BIN)/pytest --timeout=0 -m proof --proof-minutes 1000 $(ARGS) tests/proof/test_queues.py
	@HEADWAY_FAULTS_PAGE=docs/proofs/queue-faults.md $(BIN)/pytest --timeout=0 -m "proof or not proof" $(ARGS) tests/collect -k faults
	@$(BIN)/pytest --timeout=0 -m "proof or not proof" $(ARGS) tests/e2e -k "libraries or prefetched"

screenshots: install ## a picture of every page of the dashboard, also of a demo, in build/screenshots (ARGS="-k demo")
	@$(BIN)/pytest --timeout=1500 -m proof $(ARGS) tests/browser/test_screenshots.py

bench: install ## run the benchmarks (ARGS="wake" for one); each prints its figures and the machine
	@scripts=$$(ls $(foreach name,$(or $(ARGS),$(BENCHMARKS)),benchmarks/$(name).py) 2>/dev/null) || { echo "headway: no benchmark matches '$(or $(ARGS),*)'" >&2; exit 1; }; \
	  for script in $$scripts; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

format: install ## rewrite the code in the project's format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: install ## format and lint, without changing anything
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: install ## mypy, strict
	@$(BIN)/mypy

contracts: install ## who may import whom
	@$(BIN)/lint-imports --no-logo

# Without node they are left out, but where CI=true allows no skip.
web: install ## the dashboard's modules that need no page, by node --test
	@if command -v node >/dev/null; then \
	  said=$$(node --test --test-reporter=spec tests/control/web/*.test.mjs) || { echo "$$said"; exit 1; }; \
	else echo "headway: node is not installed, so the tests of tests/control/web are left out" >&2; test "$(CI)" != true; fi

# Pytest compiles a test file when it first reads it, 11 s of a processor for all. The processes of a run read the same files
# at the same time, so that each would compile all of them: in a new clone one does so before, beside `types`.
compiled: install ## compile the tests of a new clone, once for all processes
	@test -d tests/__pycache__ || $(BIN)/pytest -qq --collect-only >/dev/null || true

# Some 25 slow tests start a JVM with a session, each with 6 s less of a processor.
classes: $(VENV)/share/headway/spark-classes.jsa ## archive Spark's classes: a JVM starts with a third less of a processor
$(VENV)/share/headway/spark-classes.jsa: $(INSTALLED)
	@$(BIN)/headway pipeline prepare || echo "headway: without the archive, the slow tests take longer" >&2

# A file's tests stay together, and so do the servers that they share. In their own order short files come last; by how many
# tests they have, the laws would, of which a few take long.
fast: install ## the tests that start no JVM, no browser and no whole system; tests/side_by_side.py says how many at once
	@$(BIN)/pytest $(FAST_TESTS) --numprocesses auto --dist loadfile --durations 15 $(ARGS)

docs: install ## build the site of the documents into build/docs; a warning or a dead link ends it
	@$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs && echo "build/docs/docs/README.html"

docs-run: install ## run every command of the documents that can run; `make test` leaves out those that start Spark (ARGS="-k rehearse")
	@$(BIN)/pytest -m "proof or not proof" --durations 5 $(ARGS) tests/pages

docs-links: install ## whether links to other people's sites still lead somewhere (asks the network)
	@$(BIN)/sphinx-build -q -b linkcheck -c docs . build/links

# Code of protobuf 5.27 loads beside every later runtime; a newer generator's would shut older programs out.
PROTO_OUT ?= service
PROTOC := $(BIN)/uv run --isolated --no-project --python $(BIN)/python --with grpcio-tools==1.66.2 --with mypy-protobuf==3.6.0 --with 'setuptools<81' python -m grpc_tools.protoc

proto: install ## regenerate service/headway/wire/v1 from proto/
	@$(PROTOC) -I proto --python_out=$(PROTO_OUT) --pyi_out=$(PROTO_OUT) --grpc_python_out=$(PROTO_OUT) --mypy_grpc_out=$(PROTO_OUT) proto/headway/wire/v1/*.proto

proto-check: install ## buf: lint, format and what would break those who speak today's contracts
	@cd proto && ../$(BIN)/buf lint && ../$(BIN)/buf format --diff --exit-code && ../$(BIN)/buf breaking --against baseline.binpb

wheel: install ## build the wheel, dist/headway-VERSION-py3-none-any.whl: what other machines install
	@$(BIN)/uv --quiet build --wheel --out-dir dist . && ls dist/*.whl

release: install ## make a release of the last commit (VERSION=1.2.0, ARGS=--dry-run): all its files, commit and tag
	@test -n "$(VERSION)" || { echo "headway: which version? make release VERSION=1.2.0" >&2; exit 1; }
	@$(BIN)/python tools/release.py $(VERSION) $(ARGS)

image: ## build the container image, headway:local
	@docker build --tag headway:local .

clean: ## remove what the build and the tests leave
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
