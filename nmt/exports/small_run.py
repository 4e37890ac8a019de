"""A copy of a run without what only training needs, and a quarter of the size if its weights are in 8 bits."""

from pathlib import Path

from safetensors.torch import save_file

from nmt.insight.unknown_words import known_words
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, system_errors
from nmt.runs.weights import in_8_bits, read_weights


def write_small_run(run: LoadedRun, folder: Path, quantization: str) -> None:
    """Writes the configuration, tokenizers, dictionary, weights, words and scores of a run to an existing folder.

    With quantization=int8, matrices have 8 bits (see nmt.runs.weights.in_8_bits).
    """
    small = RunDirectory(folder)
    small.write_config(run.directory.config())
    small.write_tokenizers(run.tokenizers, run.direction)
    # From the file, because the model in memory may have been converted for a faster search.
    weights = read_weights(run.directory.weights)
    with system_errors(small.weights):
        save_file(in_8_bits(weights) if quantization == "int8" else weights, small.weights)
    small.write_dictionary(run.dictionary)
    small.write_source_words(known_words(run.directory) or ())
    small.write_metrics(run.directory.metrics())
    small.weights.chmod((folder / "config.yaml").stat().st_mode)  # safetensors makes files that only the owner can read
