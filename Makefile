# `make demo`, `make test`: each makes .venv first when it is not there. Nothing but Python 3.11 is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Graph building and progress belong to the commands; TensorFlow's own start-up notes do not help anybody here.
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: help setup demo test test-all property lint format clean

help:
	@echo "make demo    install, then text -> records -> training -> SavedModel -> nearest uses (5 to 10 minutes)"
	@echo "make test    install, then lint and every test but the slowest (about 10 minutes on two cores)"
	@echo "make test-all   also the slowest tests, of which the others show a part"
	@echo "make property   10,000 generated batches through each signature of a SavedModel (about 2 minutes)"
	@echo "make setup   only install, into .venv"
	@echo "make format  let ruff format the code"
	@echo "make clean   remove .venv, build/ and the demo's SavedModel"

setup: .venv/installed

.venv/installed: requirements.txt requirements-tasks.txt requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v == (3, 11) or sys.exit("elmo_tf needs Python 3.11; %s is %d.%d. Name another one: make PYTHON=/path/to/python3.11" % (sys.executable, *v))'
	@echo "== Installing into .venv (about a minute; TensorFlow is the large one)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --no-warn-script-location -r requirements-dev.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --quiet -e .
	@echo "== Installed. Try: make demo, or .venv/bin/elmo-tf --help"
	@touch $@

demo: setup
	$(BIN)/python examples/demo.py

test: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m ""

property: setup
	ELMO_TF_PROPERTY_BATCHES=10000 $(BIN)/python -m pytest -n 2 tests/savedmodel/test_properties.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build savedmodels/demo
