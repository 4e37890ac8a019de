"""nmt.export_attention: a picture and the weights of what a run attends to, for every sentence of a file."""

import logging
from pathlib import Path
from typing import Any

from nmt.data.corpus import read_lines, read_parallel
from nmt.evaluation.maps import AttentionMap, write_maps
from nmt.evaluation.plots import heat_map
from nmt.run.attention_maps import Forced, forced_maps
from nmt.run.build import Trained, build_translator, load_run
from nmt.run.compose import Config, Job
from nmt.run.pace import Pace
from nmt.run.refusals import existing_file
from nmt.text import UNK, Tokenizer, normalize

logger = logging.getLogger(__name__)


def export_attention(job: Job) -> None:
    """Writes out/NUMBER.png (cross attention, mean of the heads) and out/NUMBER.json (every site, layer and head).

    NUMBER is the line in the input. The maps are those of forced decoding: of the lines of `target`, or of the best
    hypothesis of the search. Prints the pictures' paths. Raises ValueError for a layer that the model does not have,
    before anything is searched.
    """
    config = job.config
    _check_type(config["layer"])
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    _check_range(config["layer"], trained)
    sources, targets = _pairs(trained, config)
    out = Path(str(config["out"]))
    out.mkdir(parents=True, exist_ok=True)
    width = max(4, len(str(len(sources))))
    drawn = []
    for forced in forced_maps(trained, sources, targets, config["batch_tokens"]):
        name = f"{forced.line + 1:0{width}}"
        write_maps(out / f"{name}.json", forced.maps)
        _draw(forced, config["layer"], out / f"{name}.png")
        drawn.append(forced.line)
    for line in sorted(drawn):
        print(out / f"{line + 1:0{width}}.png")
    if missing := sorted(set(range(len(sources))) - set(drawn)):
        logger.warning(
            "No map for %d lines that are empty or longer than the model reads, the first is line %d.",
            len(missing),
            missing[0] + 1,
        )


def _check_type(layer: Any) -> None:
    if layer is not None and (not isinstance(layer, int) or isinstance(layer, bool)):
        raise ValueError(f"layer is '{layer}'; it must be a whole number from 0, or null for the mean of the layers.")


def _check_range(layer: int | None, trained: Trained) -> None:
    # Only the maps tell how many there are; those of one unknown word cost nothing.
    probe = next(forced_maps(trained, [[UNK]], [[UNK]], batch_tokens=1))
    layers = len(probe.site("cross").weights)
    if layer is not None and not 0 <= layer < layers:
        raise ValueError(f"layer is {layer}; this model's layers are 0 to {layers - 1}, null is the mean of them.")


def _pairs(trained: Trained, config: Config) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of the sources, and of the given targets or the best hypotheses."""
    source_file = existing_file("input", config["input"])
    if config["target"] is not None:
        pairs = read_parallel(source_file, existing_file("target", config["target"]))
        return _encode(trained.tokenizers.source, pairs.source), _encode(trained.tokenizers.target, pairs.target)
    sources = _encode(trained.tokenizers.source, read_lines(source_file))
    translator = build_translator([trained], config["search"], config["batch_tokens"])
    found = translator.search_ids(sources, report=Pace("sentences translated"))
    return sources, [hypotheses[0].ids if hypotheses else [] for hypotheses in found]


def _encode(tokenizer: Tokenizer, lines: list[str]) -> list[list[int]]:
    return tokenizer.encode_all([normalize(line) for line in lines])


def _draw(forced: Forced, layer: int | None, path: Path) -> None:
    cross = forced.site("cross")
    heads = cross.weights.shape[1]
    chosen = cross.weights.mean(0) if layer is None else cross.weights[layer]
    title = f"cross attention, {_layer_name(layer, cross)}" + (f", mean of {heads} heads" if heads > 1 else "")
    heat_map(chosen.mean(0), cross.columns, cross.outputs, path, title)


def _layer_name(layer: int | None, cross: AttentionMap) -> str:
    layers = len(cross.weights)
    if layers == 1:
        return "1 layer"
    return f"mean of {layers} layers" if layer is None else f"layer {layer} of 0 to {layers - 1}"
