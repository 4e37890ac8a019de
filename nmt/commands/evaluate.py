"""nmt.evaluate: the scores of a finished run on a split of its corpus or on files of the user's own."""

import logging
import math
from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.config.messages import check_source_tokens, unknown
from nmt.config.nodes import Config
from nmt.config.schema import becomes_plain, held_out_prefixes
from nmt.data.corpus import Pairs, read_parallel
from nmt.errors import CheckFailed
from nmt.evaluation.buckets import Bucket
from nmt.evaluation.comet import Comet
from nmt.evaluation.sanity import looks_tokenized
from nmt.evaluation.scores import Score
from nmt.files import check_folder, check_writable, existing_file
from nmt.runs.alignment_error import gold_file, read_gold, read_valid_gold
from nmt.runs.evaluation import Task, evaluate_runs
from nmt.runs.load import Trained, load_runs
from nmt.runs.record import corpus_hashes, score_line
from nmt.runs.references import is_tokenized, read_references, warn_of_references
from nmt.text import normalize

logger = logging.getLogger(__name__)


def evaluate(job: Job) -> None:
    """Prints and saves all scores with signature and interval, BLEU by groups, perplexity and alignment error rate.

    Where `expect` is given and the headline is further from it than `band` it ends with exit code 1.
    """
    config = job.config
    _check(config)
    runs = load_runs(config["run_dir"], config["device"], str(config["precision"]))
    if len(runs) > 1 and config["out"] is None:
        raise ValueError("An ensemble has no folder of its own; give out=FOLDER.")
    if len(runs) > 1 and config["alignment"] is not None:
        raise ValueError(
            f"{len(runs)} runs have {len(runs)} different alignments: give one run_dir, or leave out alignment."
        )
    task = chosen_task(runs[0], config, config["alignment"])
    # A large model, and perhaps a download: after all that may be refused.
    comet = Comet(str(config["comet"]), gpu=runs[0].device.type == "cuda") if config["comet"] else None
    found = evaluate_runs(
        runs,
        task,
        config["search"],
        config["batch_tokens"],
        max_source_tokens=config["max_source_tokens"],
        minimum_bayes_risk=config["minimum_bayes_risk"],
        comet=comet,
    )
    for score in found.scores:
        print(score_line(score))
    for bucket in found.lengths:
        print(_bucket_line(bucket, "sources of {} words"))
    for bucket in found.rarities:
        print(_bucket_line(bucket, "sources whose rarest word occurs {} times in training"))
    of = found.perplexity
    print(f"Perplexity per piece {of.piece:.3f}, per word {of.word:.3f}, per character {of.character:.4f}")
    if found.links:
        of_links = found.links.rates
        print(f"AER {of_links.aer:.3f}, precision {of_links.precision:.3f}, recall {of_links.recall:.3f}")
        print(f"  {found.links.note}")
    if config["expect"] is not None:
        check_band(found.scores[0].value, config["expect"], config["band"])


def check_band(value: float, expected: float, band: float) -> None:
    """Prints that a score is at most `band` from what was expected. Raises CheckFailed when it is not."""
    where = f"{value:.2f} is {abs(value - expected):.2f} from the expected {expected:.2f}"
    if not abs(value - expected) <= band:
        raise CheckFailed(f"outside: {where}, more than {band:.2f}")
    print(f"inside: {where}, at most {band:.2f}")


def chosen_task(trained: Trained, config: Config, alignment: Any = None) -> Task:
    """The user's own files if any are given, with their gold alignment, else the split.

    Raises ValueError where its folder may not be written to, as split_task and own_files do for what they cannot take.
    """
    if config["source"] is None:
        task = split_task(trained, str(config["split"]), config["out"], " Your own: source=FILE reference=FILE.")
    else:
        task = own_files(trained, config["source"], config["reference"], alignment, config["out"])
    check_writable("out", task.out)
    return task


def split_task(trained: Trained, name: str, out: str | Path | None = None, otherwise: str = "") -> Task:
    """A split of the run's corpus. Raises ValueError for one that it does not have, which says what to do otherwise."""
    known = splits(trained)
    if name not in known:
        raise ValueError(unknown("split", name, known) + otherwise)
    data = trained.config["data"]
    pairs = read_references(known[name], trained.direction, becomes_plain(data, known[name]))
    _warn_of_another(trained, known[name])
    folder = Path(str(out)) if out else trained.run.path / "evaluation" / name
    gold = gold_file(trained, known[name])
    return _task(trained, pairs, [pairs.target], gold, folder, is_tokenized(data, pairs.target))


def _warn_of_another(trained: Trained, prefix: str) -> None:
    """Warns where the files of a split are not those that the run was trained beside."""
    then = trained.run.metrics().get("corpora", {})
    for file, digest in corpus_hashes([prefix], trained.direction).items():
        if then.get(file, digest) != digest:
            logger.warning(
                "%s is another file than when %s was trained: these scores do not compare with those of then.",
                file,
                trained.run.path,
            )


def score_test_split(trained: Trained) -> list[Score]:
    """The scores of the test split, which its `evaluation` folder gets too; none where there is no such split."""
    if "test" not in splits(trained):
        return []
    logger.info("Scoring the test split")
    return evaluate_runs([trained], split_task(trained, "test")).scores


def splits(trained: Trained) -> dict[str, str]:
    """The prefixes of the run's corpora by name, its training corpus aside."""
    return held_out_prefixes(trained.config["data"])


def own_files(trained: Trained, source: Any, reference: Any, alignment: Any = None, out: Any = None) -> Task:
    """The user's own files: source, one or more references, and a gold alignment if there is one."""
    source_file = existing_file("source", source)
    references = []
    for name in reference if isinstance(reference, list) else [reference]:
        file = existing_file("reference", name)
        lines, translations = read_parallel(source_file, file)
        warn_of_references(file, translations)
        references.append(translations)
    pairs = Pairs([normalize(line) for line in lines], references[0])
    gold = existing_file("alignment", alignment) if alignment else None
    folder = Path(str(out)) if out else trained.run.path / "evaluation" / "files" / source_file.stem
    return _task(trained, pairs, references, gold, folder, looks_tokenized(references[0]))


def check_files_given(config: Config, alignment: Any = None) -> None:
    """Raises ValueError when of source and reference one is given without the other, or an alignment without them."""
    if (config["source"] is None) != (config["reference"] is None):
        given, missing = ("source", "reference") if config["source"] else ("reference", "source")
        raise ValueError(f"{given} is given without {missing}; your own files need both.")
    if config["reference"] == []:
        raise ValueError("reference is an empty list; name at least one file.")
    if alignment is not None and config["source"] is None:
        raise ValueError("alignment belongs to files of your own; give source and reference too.")


def _task(
    trained: Trained, pairs: Pairs, references: list[list[str]], gold_file: Path | None, out: Path, tokenized: bool
) -> Task:
    # Before the long part: what does not fit is told at once.
    check_folder("out", out)
    gold = read_gold(gold_file, pairs, trained.direction) if gold_file else None
    return Task(pairs.source, references, gold, read_valid_gold(trained) if gold else None, out, tokenized)


def _check(config: Config) -> None:
    check_files_given(config, config["alignment"])
    check_source_tokens(config["max_source_tokens"])
    if config["expect"] is not None and not _finite(config["expect"]):
        raise ValueError(f"expect is '{config['expect']}'; it must be a score, a number such as 26.1, or null.")
    if not _finite(config["band"]) or config["band"] < 0:
        raise ValueError(f"band is {config['band']}; it must be a finite number, at least 0.")


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _bucket_line(bucket: Bucket, group: str) -> str:
    ends = f"{bucket.least} to {bucket.most}" if bucket.most is not None else f"{bucket.least} or more"
    ends = str(bucket.least) if bucket.least == bucket.most else ends
    lines = "1 line" if bucket.sentences == 1 else f"{bucket.sentences} lines"
    return f"{bucket.score.name} of {group.format(ends)} {bucket.score.value:.2f} ({lines})"
