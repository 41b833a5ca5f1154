# `make demo` and `make test` do everything on a fresh machine. PYTHON chooses the interpreter (3.10 to 3.13).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := outputs/quickstart
TRAIN := $(BIN)/accelerate launch --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no train.py
# The base model comes with a package: no run of these targets needs the Hub.
export HF_HUB_OFFLINE = 1
export TOKENIZERS_PARALLELISM = false

.PHONY: help install demo test lint format clean

help: ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/installed ## Make the virtual environment and install the package with all that the demo and the tests need.

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

# The baseline keeps the temperature and the learning rate that suit it best (results/development).
demo: install ## Train ColBERT_ft and NumColBERT on the built-in corpus, compare them, answer three questions.
	$(TRAIN) --config configs/quickstart.yaml --evaluate none --resume
	$(TRAIN) --config configs/quickstart.yaml --evaluate none --resume --method colbert \
		--loss.temperature 1.0 --training.learning_rate 1e-4 --output_dir $(DEMO)/colbert
	$(BIN)/python evaluate.py --model ColBERT_ft=$(DEMO)/colbert --model base=packaged:all-MiniLM-L6-v2 \
		--model NumColBERT=$(DEMO)/numcolbert --benchmark $(DEMO)/data/benchmark --output $(DEMO)/comparison --update_cards
	$(BIN)/python examples/ask.py --model $(DEMO)/numcolbert --benchmark $(DEMO)/data/benchmark

test: lint ## Check style and types, run all tests.
	$(BIN)/python -m pytest

lint: install ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## Bring the code into the project's style.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Delete what demo and tests made; the environment stays.
	rm -rf outputs .pytest_cache .mypy_cache .ruff_cache .hypothesis
