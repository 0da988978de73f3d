# Every target makes what it needs; `make test` and `make demo` want only Python >= 3.11 and git.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SEED ?= 0

.PHONY: help hooks check test demo study bench clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python >= 3.11 is needed; make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

hooks: $(VENV)/.installed  ## check before every commit
	$(BIN)/pre-commit install

check: $(VENV)/.installed  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(VENV)/.installed  ## the tests; under 15 minutes on 2 cores
	$(BIN)/python -m pytest

demo: $(VENV)/.installed  ## train the laboratory's model to correct itself, and show it; SEED=0 by default
	PATH="$(abspath $(BIN)):$$PATH" SEED=$(SEED) scripts/demo.sh

study: $(VENV)/.installed  ## every objective with three seeds; about two hours, continues where it stopped
	OMP_NUM_THREADS=1 $(BIN)/python scripts/study.py

bench: $(VENV)/.installed  ## how fast the executor decides and turns are generated, as ratios
	$(BIN)/python scripts/bench/executor.py
	$(BIN)/python scripts/bench/evaluate.py

clean:  ## remove what the targets made
	rm -rf $(VENV) outputs build *.egg-info .mypy_cache .ruff_cache .pytest_cache
