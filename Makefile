# Everything a newcomer needs: `make demo` and `make test` set up what they use, then run.
PYTHON ?= python3
VENV   := .venv
# Where a virtual environment has its programs
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(PROGRAMS)

# One environment, installed in two parts: what the commands need, then what the tests need beyond that.
COMMANDS := $(VENV)/.commands-ready
READY    := $(VENV)/.ready
# -qq: errors only
PIP      := $(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt

# One thread per test process: threads of several processes would compete for the cores. One process more than
# cores, because many tests wait for processes of their own.
WORKERS := $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else "auto")')
PYTEST  := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
FAST    := -m 'not slow'

# What runs a model in a browser, for the tests of `--export model.html`
RUNTIME := $(VENV)/onnxruntime-web-1.30.0.tgz

OLDEST := .venv-oldest

.PHONY: help setup runtime demo test test-all test-random test-times test-matrix test-oldest campaign bench release-check lint types docs docs-write readability clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# The environment is rebuilt only when the declared dependencies change.
$(COMMANDS): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "firststep needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12 ..." % v[:2] or 0)'
	@echo "Setting up $(VENV), once: PyTorch and the commands (1.2 GB, one to two minutes) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) -e '.[cli]'
	@touch $@

$(READY): $(COMMANDS)
	@echo "Adding what the tests need to $(VENV), once (1 GB, one to two minutes) ..."
	@$(PIP) -e '.[dev]'
	@touch $@

setup: $(READY)  ## create the virtual environment in .venv

# Fetched by npm. A machine without npm or network does without it: the tests that need it are skipped and say so.
$(RUNTIME): | $(READY)
	@$(BIN)/python -c 'from pathlib import Path; from firststep.deployment._internal import download_runtime; \
	    download_runtime(Path("$@"))' || true

runtime: $(RUNTIME)

demo: $(COMMANDS)  ## meta-train with and without conditioning on glyphs, ending in a table and a figure
	@$(BIN)/firststep demo

test: lint types  ## lint, type-check and run the tests (under 10 minutes on two cores)
	@$(PYTEST) $(FAST)

test-all: $(RUNTIME) lint types  ## the same with the slow tests, as CI runs it: browser, Ray, torchrun, campaigns, the site
	@$(PYTEST)

test-random: $(READY)  ## the tests of `make test` in random order, once per seed: make test-random SEEDS="1 2 3"
	@for seed in $(or $(SEEDS),1 2 3); do echo "order $$seed"; $(PYTEST) $(FAST) --order $$seed || exit 1; done

test-times: $(READY)  ## CPU seconds by test file and the slowest tests, of everything that `make test-all` runs
	@PYTHONPATH=tests/helpers $(PYTEST) -p cpu_times --durations=50

test-matrix: $(READY)  ## `make test` where something is missing: make test-matrix CASES="compiler chromium shared home root locale"
	@tests/matrix.sh $(CASES)

test-oldest:  ## the library's own tests on the lowest torch that we declare (downloads several GB on Linux)
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(OLDEST)/$(PROGRAMS)/pip install --quiet torch==2.6.0 'numpy<2.3' pytest pytest-xdist pytest-timeout hypothesis -e .
	@OMP_NUM_THREADS=1 $(OLDEST)/$(PROGRAMS)/python -m pytest -q -n auto -o addopts=--import-mode=importlib \
	    tests/test_network.py tests/test_task.py tests/adaptation tests/conditioning tests/metagradient tests/rules \
	    tests/backbones tests/test_meta_learner.py

campaign: $(READY)  ## 10,000 hostile inputs and 1,000 kills; the counts by kind, and 1 on any violation (an hour or two)
	@OMP_NUM_THREADS=1 PYTHONPATH=. $(BIN)/python -m campaigns all

bench: $(READY)  ## time and memory beside the peers, into benchmarks/results.md (most of an hour, idle machine)
	@$(BIN)/python benchmarks/run.py

release-check: $(READY)  ## build wheel and sdist into dist/, check them, install them with each extra (ten minutes or more)
	@PYTHONPATH=. $(BIN)/python -m release $(if $(TAG),--tag $(TAG))

docs: $(READY)  ## the documentation site, into site/: open site/index.html, no server and no network needed
	@$(BIN)/python -m docsite build

docs-write: $(READY)  ## fill the generated parts of the pages: tables, the reference, the figure of speed
	@$(BIN)/python -m docsite write

readability: $(READY)  ## words per sentence of every page of the documentation, the longest first
	@$(BIN)/python -m docsite readability

lint: $(READY)
	@$(BIN)/ruff check src tests examples benchmarks campaigns docsite release
	@$(BIN)/ruff format --check --quiet src tests examples benchmarks campaigns docsite release
	@$(BIN)/codespell src tests examples benchmarks campaigns docsite release docs *.md
	@$(BIN)/lint-imports --no-cache --no-logo

types: $(READY)
	@$(BIN)/mypy

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(OLDEST) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
