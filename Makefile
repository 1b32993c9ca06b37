# make run    sets up what is missing and starts a broker on localhost:9092, data in ./kwire-data
# make test   sets up what is missing and runs every test
# make help   lists the rest

PYTHON ?= python3
VENV := .venv
SPARK_VENV := .venv-spark-4.2
BIN := $(VENV)/bin
# Everything that decides what is installed: a change here sets the environment up anew.
SETUP := pyproject.toml setup.py
# What becomes C where there is a compiler for it (`setup.py`); not again for each environment, they are all the same.
COMPILED := $(shell sed -n 's/^    "\(kwire.*\.py\)",$$/\1/p' setup.py)
NOT_AGAIN := COMPILE_KWIRE=kept
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Test groups that belong together (one JVM, one Spark) stay on one worker; the others are spread.
# Tests start hundreds of processes, each of which would compile itself if it could not keep its bytecode.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 3 --dist loadgroup
# The tests of the rooms that are compiled also run with what is compiled.
ALSO_COMPILED := tests/protocol/test_varints.py tests/protocol/test_malformed_messages.py tests/protocol/records tests/storage tests/broker tests/cluster tests/simulation tests/ports tests/remote

.DEFAULT_GOAL := help
.PHONY: help run test test-spark-4.2 lint wheels bench bench-guard bench-limits crash soak spark jars kcat format clean

help:
	@sed -n 's/^# make/make/p' Makefile

# make test-spark-4.2   runs the tests of spark_jobs/ with Spark 4.2
# make lint   checks style (ruff), types (mypy) and the direction of imports (import-linter)
# make wheels builds what pip installs, into dist/: kwire compiled for this Python and machine, and plain for any
# make bench  measures kwire beside Apache Kafka; BENCH="--pairs 5 --only fresh" passes options on
# make bench-guard   counts what a request costs in calls and memory; GUARD=--update writes it down
# make bench-limits  measures kwire beside bare servers for the same clients; LIMITS="--pairs 1" passes options on
# make crash  kills brokers under producers and pipelines, hundreds of times; CRASH="--rounds 20 --seed 7" passes options on
# make soak   streams at a steady rate for ten minutes, and looks at lag and memory; SOAK="--seconds 60" passes options on
# make spark  sets up what spark_jobs/ needs: Spark 4.0 in .venv, Spark 4.2 in .venv-spark-4.2, their Kafka connectors
# make format rewrites the sources in the one style
# make clean  removes the environment and what tools left; ./kwire-data stays

run: $(VENV)/.run
	$(BIN)/kwire serve --listen localhost:9092 --data-dir ./kwire-data

test: $(VENV)/.test $(SPARK_VENV)/.done jars kcat
	TEST_COMPILED=1 $(PYTEST) $(ALSO_COMPILED)
	$(PYTEST)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --cache-dir=.mypy_cache/darwin --config-file= --ignore-missing-imports --follow-imports=silent --platform darwin $(COMPILED)
	$(BIN)/lint-imports

wheels: $(BIN)/python
	COMPILE_KWIRE=1 $(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	COMPILE_KWIRE=0 $(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	@ls dist

# A broker that may not keep its bytecode would compile itself at every start.
bench: $(VENV)/.test jars
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m benchmarks $(BENCH)

bench-guard: $(VENV)/.test
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m benchmarks.guard $(GUARD)

bench-limits: $(VENV)/.test
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m benchmarks.limits $(LIMITS)

crash: $(VENV)/.test jars
	$(BIN)/python -m compat_tests.durability $(CRASH)

soak: $(VENV)/.test jars
	$(BIN)/python -m compat_tests.soak $(SOAK)

spark: $(VENV)/.test $(SPARK_VENV)/.done
	$(BIN)/python -m jvm spark spark-4.2

# The tests of the jobs with the newer Spark throughout; `make test` runs one of them with it.
test-spark-4.2: spark kcat
	$(SPARK_VENV)/bin/python -m pytest -n 2 --dist loadgroup spark_jobs compat_tests/spark

jars: $(VENV)/.test
	$(BIN)/python -m jvm kafka streams connect spark spark-4.2 s3 tiered

kcat: $(VENV)/.test
	$(BIN)/python -m compat_tests.kcat.install

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(SPARK_VENV) build *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	rm -rf kwire/protocol/codec/_generated artifacts dist
	find kwire -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python $(SETUP) $(COMPILED)
	@echo "Installs kwire; to compile it takes a minute or two."
	$(PIP) --editable .
	touch $@

$(VENV)/.test: $(SETUP) | $(VENV)/.run
	$(NOT_AGAIN) $(PIP) --editable '.[test,spark]' pyspark==4.0.0
	touch $@

# Not beside the other one: both build the package in this folder.
$(SPARK_VENV)/.done: $(SETUP) | $(VENV)/.test
	$(PYTHON) -m venv $(SPARK_VENV)
	$(NOT_AGAIN) $(SPARK_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[test,spark]' pyspark==4.2.0
	touch $@

$(VENV)/.lint: $(VENV)/.test
	$(NOT_AGAIN) $(PIP) --editable '.[lint]'
	touch $@
