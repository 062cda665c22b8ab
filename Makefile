# Everything a visitor or a build machine runs. Needs python3 (3.11 or newer) and, for Spark, Java 17 or newer.
#
# One environment, .venv, beside this file. A stamp in it remembers what is installed, so that nothing is installed
# twice until pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PATHS := src lab tests examples
# Spark's connector for Kafka is not on Maven Central for every Spark; for this one all of it is.
KAFKA_SPARK := 4.0.0
KAFKA_VENV := .venv-kafka
# Tests start hundreds of processes: without kept bytecode each of them would read all of Numba's source anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv install demo wheel test test-slow test-thorough prove mutants test-cluster test-versions test-kafka lint typecheck format redis warm clean check-java

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.demo  ## make .venv with what the demo needs

install: $(VENV)/.dev  ## make .venv with everything that tests and checks need

demo: check-java $(VENV)/.demo  ## match 336,776 real flights against 10,000 rules on Spark (needs Java 17+)
	@$(BIN)/python examples/flights.py

test: lint redis  ## lint, types, kernel cache, then every test but the slow ones
	@mkdir -p build; $(BIN)/mypy > build/types 2>&1 & types=$$!; \
	$(BIN)/eligo warm; warm=$$?; wait $$types; types=$$?; cat build/types; exit $$((types + warm))
	$(BIN)/python -m pytest -m "not slow" --numprocesses 3 --dist loadgroup --no-loadscope-reorder --durations 20 -rs

wheel: $(VENV)/.dev  ## dist/: a wheel with kernels for this Python and kind of processor, and one without
	rm -rf build/kernels && $(BIN)/python -m eligo.packing build/kernels
	ELIGO_KERNELS=$$(echo build/kernels/*.kernels) $(BIN)/python -m uv build --quiet --wheel --out-dir dist .
	$(BIN)/python -m uv build --quiet --wheel --out-dir dist .
	@ls -l dist/*.whl

test-slow: warm  ## soak and scale tests
	$(BIN)/python -m pytest -m slow

test-thorough: warm  ## the random tests against the reference, with ten times as many examples
	ELIGO_EXAMPLES=10 $(BIN)/python -m pytest -n 2 --dist loadgroup tests/contract tests/property tests/unit/evaluate tests/unit/exchange

SECONDS ?= 600
prove: warm  ## every index and evaluator against the reference, for SECONDS=600
	$(BIN)/eligo prove --seconds $(SECONDS) --seed $$(date +%s)

mutants: warm  ## break kernels on purpose, and count how many of the mutants the proof notices (an hour)
	$(BIN)/python tests/differential/mutants.py

test-versions: $(VENV)/.dev  ## kernels with the oldest and other versions of Numba that are said to be known
	@for version in 0.60.0 0.61.2 0.64.0; do \
	  echo "Numba $$version"; \
	  $(BIN)/python -m uv venv --quiet --clear --python $(BIN)/python build/numba-$$version \
	  && $(BIN)/python -m uv pip install --quiet --python build/numba-$$version/bin/python \
	       --editable . "numba==$$version" 'pytest>=8,<9.2' 'pytest-xdist>=3.7,<4' \
	  && build/numba-$$version/bin/python -m pytest -q -n 2 tests/unit/kernels || exit 1; \
	done

test-cluster: warm  ## a Spark cluster of several processes, some of them killed in the middle of their work
	$(BIN)/python -m pytest -m cluster

test-kafka: $(KAFKA_VENV)/.made  ## a stream from a real Kafka broker, which Maven fetches
	@[ -x $(KAFKA_VENV)/bin/pytest ] || { echo "skipped: pyspark $(KAFKA_SPARK) could not be installed, see above"; exit 0; }; \
	ELIGO_KAFKA=1 $(KAFKA_VENV)/bin/python -m pytest tests/kafka

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check $(PATHS)
	$(BIN)/ruff format --check $(PATHS)

typecheck: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy

format: $(VENV)/.dev  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix $(PATHS)
	$(BIN)/ruff format $(PATHS)

# RUNLEVEL=1: the server is installed, not started; the tests start their own.
redis:  ## redis-server for the tests of its streams, where this user may install Debian packages
	@command -v redis-server >/dev/null 2>&1 || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	  && echo "installing redis-server …" && export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	  && { apt-get install -qq --no-install-recommends redis-server >/dev/null 2>&1 \
	       || { apt-get update -qq && apt-get install -qq --no-install-recommends redis-server; } >/dev/null 2>&1; }; } \
	|| echo "there is no redis-server, and it cannot be installed here: tests with Redis will be skipped"

warm: $(VENV)/.dev  ## fill the kernel cache once, before tests run in several processes
	$(BIN)/eligo warm

clean:  ## remove .venv, the demo's output and caches
	rm -rf $(VENV) $(KAFKA_VENV) demo-output spark-warehouse metastore_db derby.log build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src lab tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment ---------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "eligo needs Python 3.11 or newer; '$(PYTHON)' is not. Install it, or name one: make PYTHON=python3.12 …"; \
	  exit 2; }
	@$(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); \
	  echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: sudo apt-get install python3-venv"; \
	  exit 2; }

# uv downloads in parallel and halves the time of a first installation; pip does it where uv cannot be had.
define install
@echo "installing $(1) into $(VENV) …"
@{ $(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
   && $(BIN)/python -m uv pip install --quiet --python $(BIN)/python $(2); } \
 || { echo "uv did not do it; trying pip …"; \
      $(BIN)/python -m pip install --quiet --disable-pip-version-check $(2); }
endef

$(VENV)/.demo: pyproject.toml lab/pyproject.toml | $(BIN)/python
	$(call install,eligo and eligo-lab,--editable '.[spark]' --editable 'lab[flights]')
	@touch $@

# The developer's set holds the demo's, hence both stamps.
$(VENV)/.dev: pyproject.toml lab/pyproject.toml | $(BIN)/python
	$(call install,eligo and eligo-lab for developers,--editable '.[spark$(comma)dev]' --editable 'lab[flights$(comma)plots$(comma)contenders]')
	@touch $(VENV)/.demo $@

# Without a registry there is nothing to test with, which is no failure: the target says so and ends.
$(KAFKA_VENV)/.made: pyproject.toml
	@echo "installing eligo with pyspark $(KAFKA_SPARK) into $(KAFKA_VENV) …"
	@$(PYTHON) -m venv $(KAFKA_VENV) \
	 && $(KAFKA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	      --editable '.[spark]' 'pyspark==$(KAFKA_SPARK)' 'pytest>=8,<10' 'pytest-xdist>=3.7,<4' \
	 && touch $@ || true

comma := ,

# Said before the installation, not after it. The demo itself looks again, and at the version as well.
JAVAS = $(wildcard $(or $(JAVA_HOME),/none)/bin/java /usr/lib/jvm/*/bin/java /opt/homebrew/opt/openjdk*/bin/java \
  /usr/local/opt/openjdk*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java)

check-java:
	@command -v java >/dev/null 2>&1 || [ -n "$(JAVAS)" ] || { \
	  echo "The demo runs on Spark, which needs Java 17 or newer, and there is none on this machine."; \
	  echo "  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless"; \
	  echo "  Fedora, RHEL     sudo dnf install java-17-openjdk-headless"; \
	  echo "  macOS            brew install openjdk@17"; \
	  echo "  or set JAVA_HOME to a Java that is installed elsewhere."; \
	  exit 2; }
