# make demo: set up and run the main job. make test: set up and pass the tests. Python 3.11+ and make are all it takes.
# make slow: the tests that take long; CI runs both. make notebooks: JupyterLab on the folder notebooks.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out

.PHONY: demo test slow notebooks lint clean

demo: $(VENV)/demo.stamp
	$(BIN)/survexec demo -o $(OUT)

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n auto -m "not slow"
	@echo "all tests passed; the package under test is installed in $(VENV)"

slow: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n auto -m slow

notebooks: $(VENV)/notebook.stamp
	$(BIN)/jupyter lab notebooks

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(OUT)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "survexec needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@for name in bfcl tau2; do \
		$(BIN)/survexec env install $$name || echo "without $$name; its tests are skipped"; \
	done
	@touch $@

$(VENV)/notebook.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[notebook]'
	@touch $@
