# Two commands do everything: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
HELION ?= .venv-helion
TRITON ?= .venv-triton
DATA   := $(wildcard ../shared/data)

export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
ifneq ($(DATA),)
export TUNEWISE_DATA ?= $(abspath $(DATA))
endif

.PHONY: demo test test-full test-helion test-triton lint bench clean

$(BIN)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[learn]'
	touch $@

# The tests run torch's own AutoHeuristic; the demo needs none of that.
$(BIN)/.ready-dev: $(BIN)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(BIN)/.ready
	$(BIN)/tunewise demo

# Tests assert outcomes, never a time, so two at once disturb nothing but the clock; the tests of a file share servers.
PYTEST  = $(BIN)/python -m pytest -n 2 --dist loadfile

test: lint
	$(PYTEST)

test-full: lint
	$(PYTEST) -m 'full or not full'

# Helion and its compiler for CPUs take 1.6 GB, so they have a place of their own.
$(HELION)/.ready: pyproject.toml constraints-helion.txt
	$(PYTHON) -m venv $(HELION)
	$(HELION)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-helion.txt -e '.[helion]' jax pytest
	touch $@

test-helion: $(HELION)/.ready
	$(HELION)/bin/python -m pytest tests/with_helion

# Triton takes 1 GB, and torch as much again, so they have a place of their own too; no GPU is needed.
$(TRITON)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TRITON)
	$(TRITON)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[triton,torch]' numpy pytest
	touch $@

test-triton: $(TRITON)/.ready
	$(TRITON)/bin/python -m pytest $(wildcard tests/deploy/test_triton_*.py tests/deploy/inductor/test_inductor_gpu*.py)

lint: $(BIN)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(BIN)/.ready
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) $(HELION) $(TRITON) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
