"""The README.md of an exported model: its use, its differences from nmt.translate, its training and its scores."""

from collections.abc import Sequence
from typing import Any

import yaml

from nmt.config.direction import LANGUAGES
from nmt.config.nodes import CONFIGS
from nmt.runs.load import Trained

EMBEDDED = "sample:"
"""The prefix of the name of every part of the embedded corpus."""

_TEXT = """\
# {source} to {target}: a Transformer trained with nmt-attention

{parameters} parameters; {pieces}.
{warning}
## Use

{use}
## What differs from nmt.translate

{differences}

## Training

- Corpus: `{corpus}`{license}
- Command: `{command}`
- Seed: {seed}
- Version: {version}

## Scores

{scores}
"""

_ABOUT_THE_GRAMMAR = """
**A grammar generated the training corpus. The model translates sentences of that grammar and fails on other text.**
"""


def model_card(trained: Trained, settings: dict[str, Any], use: str, differences: Sequence[str]) -> str:
    """A model card for the Hugging Face Hub, which argos also uses as its README.md.

    `settings` are additional keys of the YAML header, `use` explains how to translate, and `differences` are sentences
    on how the exported model differs from nmt.translate.
    """
    metrics, direction, (source, target) = trained.run.metrics(), trained.direction, trained.tokenizers
    license = corpus_license(trained)
    header = {
        "language": [direction.source, direction.target],
        **({"license": "cc0-1.0"} if license == "CC0 1.0" else {}),
        "pipeline_tag": "translation",
        "tags": ["translation", "attention", "nmt-attention"],
        **settings,
    }
    versions, commit = metrics.get("versions", {}), metrics.get("git_commit")
    sizes = f"{source.size:,} pieces" if trained.tokenizers.joint else f"{source.size:,} and {target.size:,} pieces"
    text = _TEXT.format(
        source=LANGUAGES.get(direction.source, direction.source),
        target=LANGUAGES.get(direction.target, direction.target),
        parameters=f"{sum(parameter.numel() for parameter in trained.model.parameters()):,}",
        pieces=f"a {'joint vocabulary' if trained.tokenizers.joint else 'vocabulary for each side'} of {sizes}",
        warning=_ABOUT_THE_GRAMMAR if _is_embedded(trained) else "",
        use=use,
        differences="\n".join(f"- {sentence}" for sentence in differences),
        corpus=f"{trained.settings.data.name}: {', '.join(trained.settings.data.train)}",
        license=f" (license: {license})"
        if license
        else "; nmt does not know its license, which may apply to the model",
        command=metrics.get("command") or "not recorded",
        seed=trained.settings.seed,
        version=", ".join(
            f"{name} {version}" for name, version in versions.items() if name in ("nmt-attention", "torch")
        )
        + (f", commit {commit}" if commit else ""),
        scores=_scores(metrics.get("scores", {})),
    )
    return f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n{text.strip()}\n"


def corpus_license(trained: Trained) -> str | None:
    """The license of the run's training corpus, as docs/reference/corpora.md states it; None if it is not known."""
    data = trained.settings.data
    if trained.settings.start_from:
        return None
    if _is_embedded(trained):
        return "CC0 1.0"
    file = CONFIGS / "corpus" / f"{data.name}.yaml"
    if not file.is_file() or not all(f"/{data.name}/" in f"/{prefix}" for prefix in data.train):
        return None
    found: str = yaml.safe_load(file.read_text(encoding="utf-8"))["license"]
    return found


def _is_embedded(trained: Trained) -> bool:
    return all(prefix.startswith(EMBEDDED) for prefix in trained.settings.data.train)


def _scores(splits: dict[str, Any]) -> str:
    """A table of each test split's scores, with the bounds of their 95 % intervals and their signatures."""
    header = [
        "| test set | score | value | low (95 %) | high (95 %) | sacrebleu's signature |",
        "|---|---|---:|---:|---:|---|",
    ]
    rows = []
    for split, scores in splits.items():
        for score in scores:
            numbers = " | ".join(f"{number:.2f}" for number in (score["value"], *score["interval"]))
            signature = score["signature"].replace("|", r"\|")  # a bar within a cell
            rows.append(f"| `{split}` | {score['name']} | {numbers} | `{signature}` |")
    return "\n".join([*header, *rows]) if rows else "Not recorded."
