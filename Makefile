# Two commands do all set-up: `make run` and `make test`. Everything they make stays in this folder.
BIN := .venv/bin
# Which make of pyright is used is pinned in locks/dev.txt; it must not look for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/.cache/pyright
# Tests whose asserts are rewritten are kept for the next run, which would take longer to rewrite than to load them.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run test quick check format docs bench soak clean

help: ## say what each command does
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

.venv/.serve: pyproject.toml locks/serve.txt tools/setup
	@tools/setup serve

.venv/.dev: pyproject.toml locks/dev.txt tests/peers/node/package-lock.json tools/setup
	@tools/setup dev

run: .venv/.serve ## serve an invented person's records at http://127.0.0.1:8321
	@exec $(BIN)/headgate demo

check: .venv/.dev ## lint and types only
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/pyright

test: check ## lint, types and every test
	@$(BIN)/pytest -n 2

quick: .venv/.dev ## the tests of pure code and one journey, for while you write
	@$(BIN)/pytest -q -n 2 $(addprefix tests/,model schema policy text operations agent_programs reading audit journeys/test_reading.py)

format: .venv/.dev ## lay out the code and mend what can be mended
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: .venv/.dev ## write the generated pages of docs/reference anew, and build the site in dist/docs/site
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/packages.py
	@$(BIN)/python tools/hosts.py
	@rm -rf dist/docs && mkdir -p dist/docs && cp -R mkdocs.yml docs dist/docs
	@$(BIN)/zensical build --strict --config-file dist/docs/mkdocs.yml

bench: .venv/.dev ## measure what must stay fast
	@$(BIN)/python -m bench

soak: .venv/.dev ## the long fault runs, with their figures at the end
	@$(BIN)/python tools/soak.py

clean: ## remove everything the other commands made
	rm -rf .venv .run .cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
