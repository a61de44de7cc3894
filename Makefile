# Every target builds its own .venv when it is missing. PYTHON chooses the interpreter for it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
RIVALS := rivals.txt

.PHONY: demo test lint bench bench-rivals docs wheel format clean

demo: $(READY)
	$(BIN)/m3n demo

# Two processes, file by file, which share what is compiled.
test: $(READY)
	$(BIN)/m3n warmup
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# make bench BENCH="rivals --quick" runs one suite with its options; rivals that are not installed are left out.
bench: $(READY)
	$(BIN)/python -m benchmarks $(BENCH)

# The libraries that we measure ourselves against, in an environment of their own.
bench-rivals:
	$(PYTHON) -m venv benchmarks/.venv-rivals
	benchmarks/.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check $(RIVALS:%=--requirement benchmarks/%)

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

# A wheel with machine code for common processors of this platform, so that nothing is compiled where it is installed.
wheel: $(READY)
	$(BIN)/python -m m3n.compiled.ship build/machine_code
	M3N_MACHINE_CODE=$(CURDIR)/build/machine_code $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf .venv build dist benchmarks/.venv-rivals

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(READY)
