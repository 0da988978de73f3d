# Every target installs what it needs into .venv. The only requirements are Python >= 3.11, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SEED ?= 0
LAB ?= first

.PHONY: help hooks fix check fast test data demo study bench clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python >= 3.11 is required; run: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

hooks: $(VENV)/.installed  ## install the Git hook that fixes and checks every commit
	$(BIN)/pre-commit install

fix: $(VENV)/.installed  ## fix style where ruff can, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: $(VENV)/.installed  ## check style, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fast: $(VENV)/.installed  ## run the tests that start no other process (2 minutes on 2 cores)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not processes"

test: $(VENV)/.installed  ## run all tests (10 to 20 minutes on 2 cores)
	$(BIN)/python -m pytest

data: $(VENV)/.installed  ## prepare the public data sets in data/public; DATA=FOLDER has the raw files (default: download them)
	$(BIN)/python scripts/prepare_data.py public --output_dir data/public $(if $(DATA),--input $(DATA))

demo: $(VENV)/.installed  ## train and evaluate in a laboratory (2 to 5 minutes on 2 cores); LAB=first or feedback, SEED=0
	PATH="$(abspath $(BIN)):$$PATH" LAB=$(LAB) SEED=$(SEED) scripts/demo.sh

study: $(VENV)/.installed  ## compare the objectives over three seeds (2 hours on 2 cores); continues after an interruption
	OMP_NUM_THREADS=1 $(BIN)/python scripts/study.py

bench: $(VENV)/.installed  ## benchmark the executor and the generation of turns against plain baselines
	$(BIN)/python scripts/bench/executor.py
	$(BIN)/python scripts/bench/generation.py

clean:  ## remove everything that the targets made, except data/public
	rm -rf $(VENV) outputs build *.egg-info .*_cache
