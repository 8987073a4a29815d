# Two commands do all the set-up: `make run` and `make test`. Both make their own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MUTATION := $(VENV)-mutation
SITE := $(VENV)-site
DEMO := streamkit/cli/demo/two_calls.sse
WORKERS ?= 3
PORT ?= 8080
MINUTES ?= 10
.PHONY: run demo check test test-all durations test-versions test-oldest test-agents fuzz mutants coverage lint docs drift docs-site conformance bench bench-gateway bench-peers bench-check soak release install-matrix clean

run: $(VENV)/.run  ## the gateway on http://127.0.0.1:$(PORT), with a demo model inside: no key, no network; Ctrl-C ends it
	@$(BIN)/streamkit serve --port $(PORT)

demo: $(VENV)/.run  ## a bundled recording with two interleaved calls, inspected and converted
	@$(BIN)/streamkit inspect $(DEMO)
	@echo '$$ streamkit convert --from openai-chat --to anthropic $(DEMO)'
	@$(BIN)/streamkit convert --from openai-chat --to anthropic $(DEMO)

check: $(VENV)/.test lint  ## lint, types, layers, and the tests of what changed since BASE (main where none is named): a minute
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not exhaustive" -q $$($(BIN)/python tools/changed.py $(BASE))

test test-all check: export PYTHONDONTWRITEBYTECODE =  # tests start hundreds of processes: none has to compile again

test: $(VENV)/.test lint  ## every check, the laws in a seeded sample, of each test no more cases than take 0.05 s
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not exhaustive" --seconds 0.05 -q

test-all: $(VENV)/.test lint  ## the laws in full: every cut of every recording
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --timeout 3600 -q

durations: $(VENV)/.test  ## measure what a case of each test takes, by which `make test` draws cases: nothing else to do for the machine
	$(BIN)/python -m pytest -n 1 -m "not exhaustive" -q --junit-xml build/tests.xml
	$(BIN)/python tools/durations.py build/tests.xml

test-versions: $(VENV)/.test  ## a fast part of the tests under the other versions of Python that the classifiers name, where they are here
	WORKERS=$(WORKERS) $(BIN)/python tools/versions.py

test-oldest: $(VENV)/.test  ## the same part of the tests with each dependency at the lower bound that pyproject.toml states
	WORKERS=$(WORKERS) $(BIN)/python -m tools.oldest

test-agents: $(VENV)/.test  ## coding agents from npm (1.2 GB, once) through the gateway: two minutes
	$(BIN)/python -m pytest -n $(WORKERS) -m agents -q -rs tests/gateway/agents tests/suites

fuzz: $(VENV)/.fuzz  ## look for inputs that break a law: make fuzz MINUTES=10 TARGET=decoders (all targets where none is named)
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(addprefix --target ,$(TARGET))

mutants: $(MUTATION)/.ready  ## change one thing at a time and see whether a test fails: make mutants MODULE=tool_calls/check (all modules where none is named: hours)
	$(MUTATION)/bin/python tools/mutants.py $(MODULE)

coverage: $(VENV)/.test  ## which lines the tests run; tracing them takes four times as long
	$(BIN)/python -m pytest -n $(WORKERS) -m "not exhaustive" -q --timeout 600 --cov --cov-report=term:skip-covered

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.test  ## write the generated reference pages and the drawings again
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.fault_matrix
	$(BIN)/python -m tools.drawings

drift: $(VENV)/.test  ## compare the installed SDKs' types with what streamkit knows, and write docs/reference/drift.md: a minute
	$(BIN)/python -m tools.drift

docs-site: $(SITE)/.ready $(VENV)/.test  ## the pages and an API reference as a site in build/site; a link that leads nowhere fails
	$(SITE)/bin/zensical build --clean --strict
	$(SITE)/bin/python -m tools.site
	$(BIN)/python -m codespell_lib README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs
	$(BIN)/python -m pytest -q tests/docs/test_built_site.py

conformance: $(VENV)/.test  ## run other people's suites, from PyPI and npm, and write their verdicts: two minutes
	$(BIN)/python -m tools.conformance

bench: $(VENV)/.bench  ## measure everything and write docs/benchmarks: a few minutes
	$(BIN)/python -m benchmarks

bench-gateway: $(VENV)/.test  ## measure the gateway beside a byte-for-byte relay: five minutes, with nothing else to do for the machine
	$(BIN)/python -m benchmarks.gateway --write

bench-peers: $(VENV)/.bench  ## an environment for each peer that `make bench` is to measure too, from PyPI and npm: 1 GB
	$(BIN)/python -m benchmarks.environments

bench-check: $(VENV)/.bench  ## has anything become slower? by counted instructions, so that it may run anywhere; needs valgrind
	$(BIN)/python -m benchmarks.check

soak: $(VENV)/.test  ## an hour of mixed load on the gateway: memory, tasks and descriptors stay; SOAK="--minutes 5" for less
	$(BIN)/python -m benchmarks.soak --write $(SOAK)

release: $(VENV)/.test  ## check and build a release in build/release, and tag nothing; RELEASE='--tag --repository URL' tags it, --skip-tests is faster
	$(BIN)/python -m tools.release $(RELEASE)

install-matrix: $(VENV)/.test  ## the wheel in empty environments of each Python here, with each extra alone, and the README's commands
	$(BIN)/python -m tools.install_matrix

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[gateway]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

# an environment of its own: what imports mutmut is a copy of the package
$(MUTATION)/.ready: pyproject.toml
	$(PYTHON) -m venv $(MUTATION)
	$(MUTATION)/bin/python -m pip install --quiet --editable '.[mutation]'
	@touch $@

# an environment of its own: nothing of the site is needed to run or to test
$(SITE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --editable '.[docs]'
	@touch $@

# atheris has wheels for Linux on x86-64 only; without it hypothesis mutates, and no coverage guides it
$(VENV)/.fuzz: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]' || echo 'atheris does not install here: hypothesis is used'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-3.* $(MUTATION) $(SITE) mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
