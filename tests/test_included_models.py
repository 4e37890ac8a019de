"""The models that come with the package."""

import json
import re
from pathlib import Path

import pytest
from safetensors import safe_open

import nmt
from nmt.evaluation.scores import corpus_scores, headline_metrics
from nmt.runs.directory import RunDirectory
from nmt.runs.included import included_models

ROOT = Path(__file__).resolve().parents[1]
CARD = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
MODELS = included_models()


MADE = {
    "en-vi": {
        "everyday",
        "everyday_replaced",
        "exchanged",
        "lower",
        "real_replaced",
        "rexch",
        "rreal",
        "rwords",
        "words",
    },
    "vi-en": {"everyday", "exchanged"},
}
"""Corpora that were made of vi_mono, dict and the other parts."""


def examples(folder: Path) -> tuple[list[str], list[str]]:
    """The sources and the translations of the sentences that were written for an included model."""
    text = (folder / "evaluation" / "files" / "examples" / "sentences.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [line["source"] for line in lines], [line["references"][0] for line in lines]


def test_there_is_one_for_each_direction_with_the_same_examples() -> None:
    assert list(MODELS) == ["en-vi", "vi-en"]
    assert examples(MODELS["en-vi"]) == examples(MODELS["vi-en"])[::-1]


@pytest.mark.parametrize("name", MODELS)
def test_it_translates_real_sentences(name: str) -> None:
    """A model with the wrong weights, tokenizer or direction has a BLEU below 1."""
    run, (sources, references) = nmt.load(name), examples(MODELS[name])
    assert str(run.runs[0].direction) == name
    translations = run.translate(sources)
    assert all(translations)
    bleu, *_ = corpus_scores(translations, [references], headline_metrics(tokenized=False))
    assert bleu.value > 10, translations


@pytest.mark.parametrize("name", MODELS)
def test_it_is_small_and_has_no_files_besides_those_that_translation_needs(name: str) -> None:
    files = {path.relative_to(MODELS[name]).as_posix(): path for path in MODELS[name].rglob("*") if path.is_file()}
    assert set(files) == {
        *("config.yaml", "export.json", "metrics.json", "model.safetensors", "source_words.txt", "tokenizer.model"),
        "evaluation/files/examples/sentences.jsonl",
        *(["dictionary.tsv"] if name == "en-vi" else []),
    }
    assert sum(path.stat().st_size for path in files.values()) <= 20_000_000
    with safe_open(files["model.safetensors"], "pt") as stored:
        assert {stored.get_slice(key).get_dtype() for key in stored.keys()} == {"I8", "F32"}  # noqa: SIM118


@pytest.mark.parametrize("name", MODELS)
def test_the_card_names_each_corpus_that_it_was_trained_on_and_its_license(name: str) -> None:
    rows = {
        row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \| [\d,]+ (?:lines )?\| .* \| (.*) \| .* \|$", CARD, re.M)
    }
    corpora = {Path(prefix).name for prefix in RunDirectory(MODELS[name]).config()["data"]["train"]}
    translated = MADE[name]
    assert translated <= corpora
    assert corpora - translated <= set(rows)
    assert [part for part in translated if f"`{part}`" not in CARD] == []
    assert "vi_mono" in rows
