# Every task of klog; people, the README and .ci/run call the same ones. `make help` lists them.
#
# The rule: a machine needs Python 3.10 to 3.13 and make, nothing else. The first task makes .venv
# from uv.lock and, where there is no Java 17 or 21, puts one into it (tools/java_home.py). Later
# tasks find the stamp and start at once.

PYTHON ?= python3
UV_VERSION := 0.13.8

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
READY := $(VENV)/.ready
FUZZ_READY := $(VENV)/.fuzz
BROWSER_READY := $(VENV)/.browser
FUZZ_SECONDS ?= 120
SEEDS ?= 0..1000
MIN := .venv-min
MIN_READY := $(MIN)/.ready
NEXT := .venv-next
NEXT_READY := $(NEXT)/.ready
NEXT_PYSPARK := 4.3.0

SHELL := /bin/sh
.SHELLFLAGS := -euc
.DEFAULT_GOAL := help

# One Python and one Spark for driver and workers, whatever the caller's shell has set.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := $(VENV)
export SPARK_LOCAL_IP ?= 127.0.0.1
unexport SPARK_HOME
unexport VIRTUAL_ENV
# If it is set, each process compiles PySpark and klog again, which takes a worker three seconds.
unexport PYTHONDONTWRITEBYTECODE

# Asked at each run, as Java may come or go after the environment was made.
WITH_JAVA = JAVA_HOME="$$($(BIN)/python tools/java_home.py)" && export JAVA_HOME \
	&& PATH="$$JAVA_HOME/bin:$$PATH" &&
PYTEST = $(WITH_JAVA) $(BIN)/python -m pytest -p tools.suite_times
SUITES = $(WITH_JAVA) $(BIN)/python -m tools.run_suites

.PHONY: help env jar scala scala-format demo test ci full unit spark kafka stores slow package coverage \
	lint docs browser types format corpus golden options topic-configs command-line migrating fuzz fuzz-keep \
	simulate bench bench-tiny bench-tiny-all smoke-min spark-next pyfiles wheel clean

help: ## List every task
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

env: $(READY) ## Make .venv from uv.lock, with a Java where the machine has none

jar: $(READY) ## klog's jar, compiled with PySpark's Scala: the JVM engine
	$(WITH_JAVA) $(BIN)/python -m klog.spark_jar.jar_compiler

scala: $(READY) ## Format check, compiler warnings and tests of jvm/, with sbt
	$(WITH_JAVA) $(BIN)/python -m tools.sbt scalafmtCheckAll scalafmtSbtCheck shim/test

scala-format: $(READY) ## Rewrite the Scala sources as scalafmt wants them
	$(WITH_JAVA) $(BIN)/python -m tools.sbt scalafmtAll scalafmtSbt

demo: jar ## The main jobs: a broker's directory read, a stream written exactly once
	$(WITH_JAVA) $(BIN)/python demo/demo.py

test: jar ## Tests of all suites, side by side: about 40 minutes on two slow cores
	$(SUITES) test

ci: jar ## What .ci/run runs: tests, linters, types, the site, the tests of jvm/
	$(SUITES) ci

full: jar $(FUZZ_READY) ## Everything: all seeds, kills, demos and versions, before an issue is done
	$(SUITES) full

unit: $(READY) ## Quick tests: no network, no Java
	$(BIN)/python -m pytest

spark: jar ## Tests on a local Spark session
	$(PYTEST) -m "spark and not kafka and not stores and not package"

kafka: $(READY) ## Tests on a real broker and Kafka's own tools
	$(PYTEST) -m kafka

stores: $(READY) ## Tests on a real S3 server and a real HDFS
	$(PYTEST) -m stores

slow: $(READY) ## Simulations and long property runs
	$(PYTEST) -m slow

package: jar ## Build wheel, sdist and zip; install and read a topic there
	$(PYTEST) -m package

coverage: jar ## All tests with branch coverage, but for what only Spark's workers run
	$(BIN)/coverage erase
	$(WITH_JAVA) $(BIN)/coverage run -m pytest -m ""
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: $(READY) ## ruff and its format, names, words, and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/check_names.py
	$(BIN)/codespell -D - -D tools/words.txt
	$(BIN)/lint-imports

docs: $(READY) ## The site in dist/site; a warning or a dead link is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs dist/site

browser: docs $(BROWSER_READY) ## The site in Debian's Chromium, with screenshots in build/screenshots
	$(BIN)/python -m pytest -m "" tests/pages/site_in_browser.py

types: $(READY) ## mypy, strict
	$(BIN)/mypy

format: $(READY) ## Rewrite the sources as ruff wants them
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

corpus: $(READY) ## Write tests/corpus again with a real broker
	$(WITH_JAVA) $(BIN)/python -m tests.corpus.make_corpus

golden: $(READY) ## Write tests/golden again with brokers of three versions
	$(WITH_JAVA) $(BIN)/python -m tests.golden.make_golden

fuzz: $(FUZZ_READY) ## The decoders under a fuzzer, for FUZZ_SECONDS (120)
	$(BIN)/python -m tests.fuzz run --seconds $(FUZZ_SECONDS)

fuzz-keep: $(FUZZ_READY) ## Take what the fuzzer found into tests/fuzz/corpus, minimised
	$(BIN)/python -m tests.fuzz keep

simulate: $(READY) ## The commit log under faults, for SEEDS (0..1000); prints how to resume
	$(BIN)/python -m tests.simulation $(SEEDS) --keep-going

bench: jar ## Benchmarks, with the ratios to Parquet and to other decoders
	$(WITH_JAVA) $(BIN)/python -m benchmarks

bench-tiny: jar ## The same at a tiny size, so that they cannot rot
	$(WITH_JAVA) $(BIN)/python -m benchmarks --tiny

bench-tiny-all: bench-tiny ## Also those that start a broker or many processes
	$(WITH_JAVA) $(BIN)/python -m benchmarks --tiny --only compact-many --only less --only imports --only first-query
	$(WITH_JAVA) $(BIN)/python -m benchmarks --tiny --only lookups --only streams --only values
	$(WITH_JAVA) $(BIN)/python -m benchmarks --tiny --only delta --codecs lz4

smoke-min: $(MIN_READY) ## Read and write with the lowest versions that pyproject.toml allows
	$(WITH_JAVA) PYSPARK_PYTHON=$(CURDIR)/$(MIN)/bin/python \
	  PYSPARK_DRIVER_PYTHON=$(CURDIR)/$(MIN)/bin/python $(MIN)/bin/python -m tests.support.smoke

spark-next: jar $(NEXT_READY) ## The Spark tests with the newest PySpark; the jar is compiled with the oldest
	$(WITH_JAVA) PYSPARK_PYTHON=$(CURDIR)/$(NEXT)/bin/python \
	  PYSPARK_DRIVER_PYTHON=$(CURDIR)/$(NEXT)/bin/python \
	  $(NEXT)/bin/python -m pytest -m spark tests/spark tests/spark_jar

options: $(READY) ## Write docs/options.md from the table of options
	$(BIN)/python -m tools.options_page

topic-configs: $(READY) ## Write docs/topic-configs.md from the table of topic configs
	$(BIN)/python -m tools.topic_configs_page

command-line: $(READY) ## Write the verbs of docs/command-line.md from klog's parser
	$(BIN)/python -m tools.command_line_page

migrating: $(READY) ## Write the table of docs/migrating.md from the differences that are tested
	$(BIN)/python -m tools.migrating_page

pyfiles: $(READY) ## dist/klog-pyfiles.zip for spark-submit --py-files
	$(BIN)/python tools/pyfiles.py dist/klog-pyfiles.zip

wheel: jar ## dist/: wheel and sdist
	rm -rf build src/klog.egg-info
	$(UV) build --quiet --out-dir dist
	@ls dist

clean: ## Remove what the tasks made, but .venv
	rm -rf build dist src/klog/jars jvm/target target project/target project/project $(MIN) $(NEXT) \
	  .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache \
	  spark-warehouse metastore_db derby.log src/klog.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(READY): uv.lock pyproject.toml tools/java_home.py Makefile
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || { \
	  echo "klog needs Python 3.10 to 3.13: make PYTHON=python3.11 $(or $(MAKECMDGOALS),env)" >&2; \
	  exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make environments; give another: make PYTHON=..." >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(UV) sync --frozen --quiet
	@$(BIN)/python tools/java_home.py >/dev/null 2>&1 || $(UV) sync --frozen --quiet --group java
	$(BIN)/python tools/java_home.py
	@rm -f $(VENV)/spark-classes.jsa  # of the last jars; tools/spark_archive.py writes it again
	@touch $@

$(FUZZ_READY): $(READY)
	$(UV) sync --frozen --quiet --inexact --group fuzz
	@$(BIN)/python -c 'import atheris' 2>/dev/null || { \
	  echo "atheris has wheels for Linux on x86-64 only; make unit puts its corpus to the decoders" >&2; \
	  exit 1; }
	@touch $@

$(BROWSER_READY): $(READY)
	$(UV) sync --frozen --quiet --inexact --group browser
	@command -v chromium >/dev/null || apt-get install --yes --quiet chromium || { \
	  echo "make browser needs chromium: apt-get install chromium, as root" >&2; exit 1; }
	@touch $@

$(MIN_READY): $(READY)
	$(UV) venv --quiet --clear --python $(BIN)/python $(MIN)
	$(UV) pip install --quiet --python $(MIN)/bin/python --resolution lowest-direct --editable .
	@touch $@

# Delta's newest version refuses this PySpark, and the tests that are run do without it.
$(NEXT_READY): $(READY)
	$(UV) venv --quiet --clear --python $(BIN)/python $(NEXT)
	$(UV) export --quiet --frozen --no-hashes --no-emit-project --no-emit-package pyspark \
	  --no-emit-package delta-spark --output-file $(NEXT)/requirements.txt
	$(UV) pip install --quiet --python $(NEXT)/bin/python --requirements $(NEXT)/requirements.txt \
	  pyspark==$(NEXT_PYSPARK) --editable .
	@touch $@

