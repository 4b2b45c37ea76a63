# Two commands do everything: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
DATA   := $(wildcard ../shared/data)

export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
ifneq ($(DATA),)
export TUNEWISE_DATA ?= $(abspath $(DATA))
endif

.PHONY: demo test test-full lint bench clean

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

test: lint
	$(BIN)/python -m pytest

test-full: lint
	$(BIN)/python -m pytest -m 'full or not full'

lint: $(BIN)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(BIN)/.ready
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
