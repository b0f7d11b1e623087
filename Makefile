# Deskbus. `make run` and `make test` need only Python 3.11+ (with venv), git and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MARK := $(VENV)/.installed

# What Python compiled once it need not compile again: without its caches `make check` takes twice as
# long, and every process of a desk starts seconds later.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test docker check fix wheel bench soak docs contracts size dashboards prompts readme lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort

$(MARK)-run: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Deskbus needs Python 3.11 or newer; set PYTHON=/path/to/it")'
	@$(PYTHON) deploy/environment.py $(VENV) requirements.lock --editable
	@touch $@

$(MARK)-test: $(MARK)-run requirements-test.lock
	@$(PYTHON) deploy/environment.py $(VENV) requirements-test.lock
	@touch $@

$(MARK)-bench: $(MARK)-run requirements-bench.lock
	@$(PYTHON) deploy/environment.py $(VENV) requirements-bench.lock
	@touch $@

# Half of the time of these is waiting: three at once keep two cores busy.
WORKERS := 3

# Tests whose limits are seconds: those that failed are tried once more, alone, as others may have
# taken the machine. Both tries are printed. Those of pure code and of chaos have one try.
define once_more
$(BIN)/python -m pytest $(1) $(2) || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(2)
endef

define static
$(BIN)/ruff format --check --quiet .
$(BIN)/ruff check --quiet .
$(BIN)/mypy
$(BIN)/lint-imports
endef

# Who has no test left takes the other's: no file of these needs its tests in one process.
pure = $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/unit tests/flow tests/architecture

run: $(MARK)-run ## one decision cycle on real prices: no key, no account, no Docker
	@$(BIN)/deskbus run

test: $(MARK)-test ## format, lint, types, import rules and the whole test suite
	$(static)
	$(pure)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" tests/chaos --durations=5
	$(call once_more,-n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" --durations=15,tests/integration)
	$(call once_more,-q -n $(WORKERS) --dist loadfile --durations=5,tests/browser)

docker: $(MARK)-test ## compose.yaml on a Docker engine of its own (root, Debian): build, cycles, backup, restore
	$(BIN)/python -m tests.docker.kit

check: $(MARK)-test ## the fast part: format, lint, types, imports, pure and in-process tests
	$(static)
	$(pure) -m "not slow"

fix: $(MARK)-test ## format and mend what ruff can mend
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

wheel: $(MARK)-test ## the package for environments of your own: dist/
	$(BIN)/python -m hatchling build -t wheel -t sdist
	cd deploy/client && $(CURDIR)/$(BIN)/python -m hatchling build -t wheel -d $(CURDIR)/dist

bench: $(MARK)-test $(MARK)-bench ## the measures of docs/benchmarks/README.md (one to two hours)
	$(BIN)/python -m benchmarks.workflow
	$(BIN)/python -m benchmarks.footprint
	$(BIN)/python -m benchmarks.evidence
	$(BIN)/python -m benchmarks.leakage
	$(BIN)/python -m benchmarks.designs
	$(BIN)/python -m benchmarks.year
	$(BIN)/python -m benchmarks.cycles
	$(BIN)/python -m benchmarks.beside_study
	$(BIN)/python -m benchmarks.pages
	$(BIN)/python -m benchmarks.desk --since 2012-03-01
	$(BIN)/python -m benchmarks.mutants --count 30

soak: $(MARK)-test ## the long chaos run: 2,000 cycles with kills of everything; 1,000 real ones with outages too; both again in one process; a study's clock killed at each step; Postgres away for 6 minutes; a model's cycle hit at every point; a planner and its fallback killed at every point; machines without power, and hosts cut off; 1,000 races; a notice's way struck at 50 moments; a study of models that know the future by name and of honest ones; every shape of reply with each agent on both wires; every NATS connection of each key held; a hostile MCP client; a crowd before the console; a model that obeys what strangers write; clocks that jump; a standby that is behind; 10,000 notices; five questions of every decision of a year and a half; files that change under a desk; containers killed beside cycles, and without room; 1,000 orders at a broker under 300 faults, also of a whole desk
	$(BIN)/python -m tests.chaos.soak --cycles 2000
	$(BIN)/python -m tests.chaos.soak --cycles 1000 --one-process
	$(BIN)/python -m tests.chaos.real_cycles --cycles 1000
	$(BIN)/python -m tests.chaos.real_cycles --cycles 500 --one-process
	$(BIN)/python -m tests.chaos.orders_at_broker
	$(BIN)/python -m tests.chaos.outages
	$(BIN)/python -m tests.chaos.crash_matrix
	$(BIN)/python -m tests.chaos.crash_matrix --one-process
	$(BIN)/python -m tests.chaos.fallback_crashes
	$(BIN)/python -m benchmarks.series
	$(BIN)/python -m tests.chaos.machines --cycles 600
	$(BIN)/python -m tests.chaos.machines --cycles 140 --namespaces
	$(BIN)/python -m tests.chaos.real_hosts --cycles 140
	$(BIN)/python -m tests.chaos.notices --moments 50
	$(BIN)/python -m tests.chaos.floods
	$(BIN)/python -m tests.chaos.hostile_mcp
	$(BIN)/python -m tests.chaos.injections
	$(BIN)/python -m tests.chaos.clocks
	$(BIN)/python -m tests.chaos.failover
	$(BIN)/python -m tests.chaos.notice_flood
	$(BIN)/python -m tests.chaos.studies --cells 12
	$(BIN)/python -m tests.chaos.studies --cells 12 --one-process
	$(BIN)/python -m tests.chaos.study_steps
	$(BIN)/python -m tests.chaos.study_steps --one-process
	$(BIN)/python -m tests.browser.big_tables
	$(BIN)/python -m benchmarks.hindsight
	$(BIN)/python -m tests.chaos.reply_matrix
	$(BIN)/python -m tests.chaos.held_keys
	$(BIN)/python -m tests.chaos.damaged_files
	$(BIN)/python -m tests.chaos.changing_files --cycles 300
	$(BIN)/python -m tests.chaos.crowd
	$(BIN)/python -m tests.chaos.questions
	$(BIN)/python -m tests.docker.kit --long
	$(BIN)/python -m pytest -q --timeout 3600 -m soak tests/integration tests/chaos
	RACES=1000 $(BIN)/python -m pytest -q --timeout 3600 tests/integration/orchestrator/test_approval_races.py \
		tests/integration/execution/test_guard.py
	EVERY=1 $(BIN)/python -m pytest -q --timeout 3600 tests/integration/orchestrator/test_local.py

docs: $(MARK)-test ## the site of docs/ with search: dist/site/index.html
	rm -rf dist/site
	$(BIN)/python -m deploy.site dist/site

contracts: $(MARK)-run ## write what is made from code: contracts/schemas, and tables and pages of docs
	$(BIN)/python -m libs.bus.document.asyncapi contracts/schemas
	$(BIN)/python -m deploy.reference

size: $(MARK)-test ## write SIZE.toml: how large the tree may be
	$(BIN)/python -m deploy.reference.size > SIZE.toml

dashboards: $(MARK)-test ## write deploy/grafana/dashboards
	$(BIN)/python -m deploy.grafana.make

prompts: $(MARK)-test ## write tests/data/prompts: what each agent is sent, for review
	$(BIN)/python -m tests.unit.services.golden_prompts tests/data/prompts

UV_COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
readme: $(MARK)-run ## write the output of `deskbus run` in docs/reading.md
	$(BIN)/python -m deploy.reference.run_sample docs/reading.md

lock: ## resolve the dependencies anew (needs uv)
	$(UV_COMPILE) pyproject.toml --extra all --extra build --output-file requirements.lock
	$(UV_COMPILE) pyproject.toml --extra all --extra build --extra test --output-file requirements-test.lock --constraint requirements.lock
	$(UV_COMPILE) pyproject.toml --extra all --extra build --extra bench --output-file requirements-bench.lock --constraint requirements.lock

clean: ## remove the environment and caches; the desk's data (.deskbus) stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
