# make demo    train on the embedded corpus, score, translate three sentences, draw what the model attends to
# make test    check format, lint and types, and run the tests
# make lint    the checks without the tests
# make soak    what takes longer than a test: strange input by the thousand, kills at random moments, a long training
# make bench   how fast each model trains on this machine, and what its parts cost
# The first one makes .venv and installs; another Python: make demo PYTHON=/path/to/python3.12

PYTHON ?= python3
MODEL := luong
RUN := runs/demo

VENV := .venv/bin/python -m
PIP := $(VENV) pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test lint bench soak
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# //p' Makefile

demo: $(RUN)/model.safetensors
	@echo; echo "== Scores on the test split"
	$(VENV) nmt.evaluate run_dir=$(RUN)
	@echo; echo "== Three translations"
	head -n 3 data/sample/test.en > $(RUN)/three.en
	$(VENV) nmt.translate run_dir=$(RUN) < $(RUN)/three.en > $(RUN)/three.vi
	@paste -d '\n' $(RUN)/three.en $(RUN)/three.vi /dev/null
	@echo "== What the model attends to in them"
	$(VENV) nmt.export_attention run_dir=$(RUN) input=$(RUN)/three.en out=$(RUN)/maps overwrite=true
	@echo; echo "The next make demo uses the run in $(RUN) again; delete that folder to train anew."

$(RUN)/model.safetensors: | .venv/installed
	@echo "== Training on the embedded corpus, about 4 minutes on two cores"
	$(VENV) nmt.train model=$(MODEL) run_dir=$(RUN) overwrite=true

test: lint
	OMP_NUM_THREADS=1 $(VENV) pytest -n auto --maxprocesses=4

lint: .venv/installed-dev
	$(VENV) ruff format --check
	$(VENV) ruff check
	$(VENV) mypy

soak: .venv/installed-dev
	FUZZ=soak OMP_NUM_THREADS=1 $(VENV) pytest -n auto --maxprocesses=4 --hypothesis-show-statistics tests/test_fuzz.py
	$(VENV) scripts.studies.kill_study
	$(VENV) scripts.studies.soak

# On a corpus of your own: .venv/bin/python -m scripts.bench.benchmark --help
bench: .venv/installed
	$(VENV) scripts.bench.benchmark parts
	@for model in bahdanau luong transformer; do \
	  echo; echo "== $$model"; \
	  $(VENV) scripts.bench.benchmark train --data data/sample/train,data/sample/phrases model=$$model tokenizer.size=2000 || exit; \
	done

.venv/installed-dev: .venv/installed
	$(PIP) -e '.[dev]'
	@touch $@

.venv/installed: pyproject.toml constraints.txt | .venv/bin/pip
	@echo "== Installing into .venv, some minutes the first time"
	$(PIP) -e .
	@touch $@

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || \
	  { echo "error: '$(PYTHON)' is not Python 3.11, 3.12 or 3.13; give one that is: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12" >&2; exit 2; }
	$(PYTHON) -m venv .venv
