# `make demo` and `make test` set everything up in .venv; the second time they start at once.
PYTHON ?= python3
RUN := .venv/bin/

.PHONY: demo test test-slow fuzz lint format types bench soak docs wheel clean

demo: .venv/ready
	$(RUN)curious demo

# Without what takes tens of seconds a test: that is `make test-slow`.
test: .venv/ready
	$(RUN)pytest --numprocesses auto --dist worksteal -m "not slow"

# Whole agents that learn, dozens of kills, sweeps on clusters.
test-slow: .venv/ready
	$(RUN)pytest --numprocesses auto --dist worksteal -m slow

# Changed files for every reader; INPUTS=1000000 takes hours.
INPUTS ?= 20000
fuzz: .venv/ready
	$(RUN)python tests/fuzz/fuzz.py --inputs $(INPUTS) --out out/fuzz

lint: .venv/ready
	$(RUN)ruff check .
	$(RUN)ruff format --check .

format: .venv/ready
	$(RUN)ruff check --fix .
	$(RUN)ruff format .

types: .venv/ready
	$(RUN)mypy

# Peers are compared when they are installed: .venv/bin/pip install -e ".[bench]"
bench: .venv/ready
	$(RUN)python bench/replay.py --peers --out out/bench
	$(RUN)python bench/envs.py --out out/bench
	$(RUN)python bench/update.py --out out/bench

# An hour of kills, resumes and comparisons; a short one is part of `make test-slow`.
soak: .venv/ready
	$(RUN)python soak/soak.py --minutes 60 --out out/soak

# site/index.html, which can be read from the disk.
docs: .venv/ready
	$(RUN)mkdocs build --strict

# Into dist/. What an earlier build has left would be packed again, also files that are gone.
wheel: .venv/ready
	rm -rf build
	$(RUN)pip wheel --no-deps --no-build-isolation --wheel-dir dist .

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(RUN)pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv out site build dist
