"""A tiny corpus, and the settings of a tiny run on it."""

import random
from pathlib import Path

ENGLISH = ["one", "two", "three", "four", "five", "six", "seven"]
VIETNAMESE = ["một", "hai", "ba", "bốn", "năm", "sáu", "bảy"]
TINY = [
    "experiment=none",
    "data=files",
    "data.train=[train]",
    "data.valid=valid",
    "data.test=test",
    "tokenizer.size=293",
    "tokenizer.joint=true",
    "unicode_noise=0",
    "filters.drop_overlap=false",
    "model=transformer",
    "model.dim=12",
    "model.ffn_dim=19",
    "model.num_heads=2",
    "model.num_layers=1",
    "batching.batch_tokens=101",
    "optimizer.lr=0.01",
    "schedule.warmup=7",
    "trainer.accelerator=cpu",
    "validation.sentences=2",
    # Drawing them takes longer than the training. The runs whose attention is looked at have probes.
    "validation.probes=0",
    "validation.monitor=loss",
    "search.beam_size=2",
    # An untrained model writes until the search stops it: by default at twice the pieces of the source, and 10.
    "search.constraints.max_length_ratio=1.0",
    "search.constraints.max_length_offset=3",
    "run_dir=run",
]


def write_corpus(folder: Path, name: str, lines: int, seed: int) -> None:
    """`lines` sentences of number words and their translation word by word."""
    chosen = random.Random(seed)
    sentences = [[chosen.randrange(len(ENGLISH)) for _ in range(chosen.randint(1, 11))] for _ in range(lines)]
    for language, words in (("en", ENGLISH), ("vi", VIETNAMESE)):
        text = "".join(" ".join(words[i] for i in sentence) + ".\n" for sentence in sentences)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def write_corpora(folder: Path) -> Path:
    """Train, valid and test; the folder."""
    for seed, (name, lines) in enumerate({"train": 211, "valid": 7, "test": 1}.items()):
        write_corpus(folder, name, lines, seed)
    return folder
