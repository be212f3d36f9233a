# Each target installs into .venv first if needed: with the newest of Python 3.13, 3.12 and 3.11 that is found, or with
# PYTHON, for instance `make test PYTHON=python3.12`.
BIN := .venv/bin
# Hides TensorFlow's start-up notes.
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: help setup demo savedmodels fast test test-all test-cluster test-java property docs lint format wheel clean

help:
	@echo "make demo      install, then text -> records -> training -> SavedModel -> nearest uses (3 to 4 minutes on two quiet cores)"
	@echo "make savedmodels  install, then write the bundled model as savedmodels/english/1, for tf.saved_model.load"
	@echo "make fast      the tests of the network (also against reference.py), text and records (1 to 2 minutes)"
	@echo "make test      install, then lint and all tests but the slowest (about 7 minutes on two quiet cores)"
	@echo "make test-all  the slowest tests too; some of them install packages from PyPI"
	@echo "make test-cluster  both Beam jobs on Flink and S3 on this machine (needs Java and Maven; fetches 500 MB once)"
	@echo "make test-java  the example in Java (needs Java 17 and Maven; fetches 170 MB once)"
	@echo "make property  10,000 generated batches through each signature of a SavedModel (about 2 minutes)"
	@echo "make docs      build the site of these pages and of the reference into site/ (half a minute)"
	@echo "make setup     only install, into .venv (1 GB to download, 2 to 10 minutes)"
	@echo "make lint      ruff and mypy"
	@echo "make format    let ruff format and fix the code"
	@echo "make wheel     build the wheel into dist/"
	@echo "make clean     remove .venv, build/, dist/, site/ and the SavedModels of demo and savedmodels"
	@echo "With any of them: PYTHON=python3.12 makes .venv with that Python (3.11 to 3.13; default: the newest found),"
	@echo "                  LOCKED=1 installs the versions of requirements-dev.lock (default: the newest allowed)"

setup:
	@LOCKED=$(LOCKED) .ci/setup "$(PYTHON)"

demo: setup
	$(BIN)/python examples/demo.py

savedmodels: setup
	@test -d savedmodels/english/1 || $(BIN)/elmo-tf import english --output savedmodels/english

fast: setup
	$(BIN)/python -m pytest -n 2 tests/model tests/engines/test_numpy.py tests/text tests/records

test: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-all: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not cluster and not java"

test-cluster: setup
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r tests/cluster/requirements.txt
	$(BIN)/python -m tests.cluster.engine
	$(BIN)/python -m pytest -n 0 -m cluster tests/cluster

test-java: setup
	$(BIN)/python -m pytest -n 0 -m java tests/examples/test_java.py

property: setup
	ELMO_TF_PROPERTY_BATCHES=10000 $(BIN)/python -m pytest -n 2 -m "" tests/savedmodel/test_properties.py

docs: setup  # not --quiet: mkdocs would not count the warnings then
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r docs/site/requirements.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html, which a browser also opens without a server"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: setup
	rm -rf build/lib build/bdist.*  # modules that were removed since would come back from there
	rm -f dist/elmo_tf-*.whl
	$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir dist .
	@ls dist/elmo_tf-*.whl

clean:
	rm -rf .venv build dist site savedmodels/demo savedmodels/english
