# `make demo` and `make test` need Python 3.11 or newer and the network for the first installation, nothing else.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# The index that torch is taken from, where PyPI's torch with CUDA (5 GB) is not wanted: its makers have one for the CPU alone.
TORCH_INDEX ?=
TORCH = $(if $(TORCH_INDEX),$(RUN) -m pip install --quiet --index-url $(TORCH_INDEX) torch)

.PHONY: venv demo test coverage lint docs bench clean

demo: $(VENV)/.installed
	$(RUN) eval/demo.py

venv: $(VENV)/.installed

# faiss-cpu, not faiss-gpu: the two extras exclude each other (both are the module `faiss`).
$(VENV)/.installed: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(TORCH)
	$(RUN) -m pip install --quiet --editable '.[faiss-cpu,server]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(TORCH)
	$(RUN) -m pip install --quiet --editable '.[faiss-cpu,dev]'
	touch $@ $(VENV)/.installed

# Without what they need, the tests of Elasticsearch and Okapi are skipped and say so. pytest's own closing line comes last.
# Three processes for two cores, each with all tests of a file: those of pages and servers wait half of their time.
test: $(VENV)/.installed-dev
	$(RUN) index/elasticsearch/server.py fetch || echo "make test: without it the tests that need Elasticsearch are skipped"
	$(RUN) index/elasticsearch/server.py fetch --engine opensearch-3 || echo "make test: without it those that need OpenSearch are skipped"
	$(RUN) okapi/fetch.py || echo "make test: without it the tests that need Okapi are skipped"
	$(RUN) tests/fetch_clients.py || echo "make test: without it the tests of clients for Node and Java are skipped"
	$(RUN) -m pytest --numprocesses 3 --dist loadfile

# The same with every branch counted, also in the programs that tests start: some minutes longer.
coverage: $(VENV)/.installed-dev
	$(RUN) -m pytest --numprocesses 3 --dist loadfile --cov --cov-report=term:skip-covered

lint: $(VENV)/.installed-dev
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy

# The site, in build/site. The variable silences a word of the theme's makers on what comes after mkdocs.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

bench: $(VENV)/.installed
	$(RUN) benchmarks/decode.py
	$(RUN) benchmarks/train_speed.py

clean:
	rm -rf $(VENV)/.installed $(VENV)/.installed-dev build dist *.egg-info .coverage .coverage.*
