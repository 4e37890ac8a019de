"""Which models can be exported in which format, and how closely they match: tiny models with random weights.

  python -m scripts.studies.export_matrix                            every combination: about an hour on one core
  python -m scripts.studies.export_matrix --formats ctranslate2      minutes
  python -m scripts.studies.export_matrix --only transformer,additive   rows with these words

A cell is the largest difference between a piece's log-probabilities under the exported model and the run, in nats, over
20 sentence pairs of the embedded corpus. If a format refuses a combination, the cell has the number of the error
message; the messages follow the table.
"""

import argparse
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from nmt.cli.compose import configuration
from nmt.config.direction import Direction
from nmt.config.schema import RunSettings, validated
from nmt.data.corpus import read_pairs
from nmt.errors import Mistake
from nmt.exports.formats import open_exported, write_format
from nmt.exports.parity import log_prob_differences
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, build_model
from nmt.tables import Cell, Table
from nmt.text import Tokenizer, TokenizerPair
from nmt.text.tokenizer import train_tokenizer
from scripts.mistakes import report_mistakes

DIRECTION = Direction("en", "vi")
PAIRS = 20
SCORERS = ["additive", "concat", "dot", "scaled_dot", "general", "location", "gaussian", "gaussian_learned", "none"]
SMALL = {
    "transformer": "model.dim=16 model.ffn_dim=24 model.num_heads=2 model.num_layers=2",
    "luong": "model.embedding_dim=12 model.encoder_dim=16 model.decoder_dim=16 model.num_layers=2",
    "bahdanau": "model.embedding_dim=12 model.encoder_dim=16 model.decoder_dim=16 model.maxout_dim=8",
}


class Row(NamedTuple):
    """The name of a combination, and its overrides of nmt.train."""

    words: tuple[str, ...]
    overrides: tuple[str, ...]


def rows() -> Iterator[Row]:
    """Every scorer in every model; then the Transformer's norms and vocabularies, windows, normalizers and encoders."""
    for model, scorer in itertools.product(SMALL, SCORERS):
        yield row(model, f"scorer={scorer}")
    orders, vocabularies = ("true", "false"), ("true", "false")
    kinds = ("norm@model=layer_norm", "norm@model=scale_norm", "model.fix_norm=true")
    for first, kind, joint in itertools.product(orders, kinds, vocabularies):
        yield row("transformer", f"model.norm_first={first}", kind, f"tokenizer.joint={joint}")
    for site, scorer in itertools.product(("encoder_self", "decoder_self", "cross"), ("dot", "general", "none")):
        yield row("transformer", f"scorer@{site}={scorer}")
    for model, window in itertools.product(SMALL, ("local_m", "local_p")):
        yield row(model, f"window={window}", "window.half_width=3")
    for model in SMALL:
        yield row(model, "normalizer=sparsemax")
    for model in ("luong", "bahdanau"):
        yield row(model, "model.num_heads=2")
        yield row(model, "encoder@model=lstmn")
        yield row(model, "model.fix_norm=true", "tokenizer.joint=false")
    yield row("luong", "encoder@model=reversed")
    yield row("luong", "model.input_feeding=false")
    yield row("luong", "decoder@model=lstmn")
    yield row("luong", "context=concatenate")
    yield row("transformer", "context=hierarchical")


def row(model: str, *overrides: str) -> Row:
    return Row((model, *overrides), (f"model={model}", *SMALL[model].split(), *overrides))


@cache
def tokenizers(joint: bool) -> TokenizerPair:
    """Vocabularies of the embedded corpus."""
    sides = read_pairs("sample:train", DIRECTION)
    lines = [[*sides.source[:3000], *sides.target[:3000]]] if joint else [sides.source[:3000], sides.target[:3000]]
    made = [Tokenizer(train_tokenizer(side, kind="unigram", size=700, character_coverage=1.0)) for side in lines]
    return TokenizerPair(made[0], made[-1])


def run_of(combination: Row, folder: Path) -> LoadedRun:
    """A run with random weights, biases and norms included."""
    config = configuration("train", ["experiment=sample", *combination.overrides, f"run_dir={folder}"])
    stored = {key: value for key, value in config.items() if key in RunSettings.model_fields}
    settings = validated(RunSettings, stored)
    torch.manual_seed(1)
    pair = tokenizers(settings.tokenizer.joint)
    model = build_model(settings.model, pair, settings.context.model).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) / 10)
    with_plain_weights(model)
    return LoadedRun(RunDirectory(folder), settings, pair, model, torch.device("cpu"))


def difference(run: LoadedRun, format: str, out: Path) -> float:
    """The largest difference of a log-probability, in nats. Raises Mistake if the format refuses the model."""
    out.mkdir()
    write_format(run, format, out, "float32")
    pairs = read_pairs("sample:valid", DIRECTION)
    sources, targets = (
        tokenizer.encode_all(side[:PAIRS]) for tokenizer, side in zip(run.tokenizers, pairs, strict=True)
    )
    differences = log_prob_differences(run, open_exported(run, format, out, "float32"), sources, targets)
    return max(max(row) for row in differences.values())


def matrix(formats: Sequence[str], only: Sequence[str]) -> tuple[Table, list[str]]:
    """A row for each combination that has all the words of `only`, and the error messages of refusals."""
    sentences: list[str] = []
    table: list[list[Cell]] = []
    for combination in rows():
        if not all(any(word in part for part in combination.words) for word in only):
            continue
        cells: list[Cell] = [" ".join(combination.words)]
        with tempfile.TemporaryDirectory() as folder:
            run = run_of(combination, Path("PATH"))
            for format in formats:
                try:
                    cells.append(f"{difference(run, format, Path(folder) / format):.0e}")
                except Mistake as error:
                    if str(error) not in sentences:
                        sentences.append(str(error))
                    cells.append(f"refused ({sentences.index(str(error)) + 1})")
        print("\t".join(map(str, cells)), flush=True)
        table.append(cells)
    return Table(["model", *formats], table), sentences


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default="ctranslate2,hugging_face,onnx")
    parser.add_argument("--only", default="", help="words that the rows must have, separated by commas")
    options = parser.parse_args(arguments)
    table, sentences = matrix(options.formats.split(","), [word for word in options.only.split(",") if word])
    print(f"\n{table.markdown()}\n")
    for number, sentence in enumerate(sentences, start=1):
        print(f"{number}. {sentence}")


if __name__ == "__main__":
    report_mistakes(main)
