"""nmt.evaluate: the scores of a finished run on a split of its corpus or on files of the user's own."""

from dataclasses import dataclass
from pathlib import Path

from nmt.data.corpus import Pairs, alignment_file, read_parallel
from nmt.evaluation.scores import Bucket, by_length, corpus_scores, looks_tokenized, sentence_scores
from nmt.run.alignment import Links, alignment_error, read_gold, read_valid_gold
from nmt.run.build import Trained, build_translator, load_run
from nmt.run.compose import Config, Job
from nmt.run.record import score_line, scores_record
from nmt.run.refusals import existing_file, unknown
from nmt.run.rundir import write_json
from nmt.run.scoring import read_references, warn_of_changes
from nmt.text import normalize


@dataclass(frozen=True)
class Task:
    """What is scored: normalised sources, raw references, gold alignments if there are any, and where it is written."""

    pairs: Pairs
    gold: Path | None
    out: Path


def evaluate(job: Job) -> None:
    """Prints BLEU and chrF with signature and interval, BLEU by length, and the alignment error rate; saves all of it.

    The folder gets hypotheses.txt, sentences.tsv (chrF of each line) and scores.json.
    """
    config = job.config
    _check_files_given(config)
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    task = _own_files(config, trained) if config["source"] else _split(config, trained)
    # Before the long part: a file that does not fit is told at once.
    gold = read_gold(task.gold, task.pairs, trained.direction) if task.gold else None
    valid_gold = read_valid_gold(trained) if gold else None
    hypotheses = build_translator([trained], config["search"], config["batch_tokens"]).translate(task.pairs.source)
    tokenized = looks_tokenized(task.pairs.target)
    scores = corpus_scores(hypotheses, task.pairs.target, tokenized=tokenized)
    lengths = by_length(hypotheses, task.pairs.target, task.pairs.source, tokenized=tokenized)
    links = alignment_error(trained, gold, valid_gold, config["batch_tokens"]) if gold else None
    _save(
        task, hypotheses, {"scores": scores_record(scores), "by_length": _length_record(lengths), **_aer_record(links)}
    )
    for score in scores:
        print(score_line(score))
    for bucket in lengths:
        score = bucket.score
        print(f"{score.name} of sources of {_range(bucket)} words {score.value:.2f} ({_lines(bucket.sentences)})")
    if links:
        print(f"AER {links.aer:.3f} {links.note}")


def _check_files_given(config: Config) -> None:
    if (config["source"] is None) != (config["reference"] is None):
        given, missing = ("source", "reference") if config["source"] else ("reference", "source")
        raise ValueError(f"{given} is given without {missing}; your own files need both.")
    if config["alignment"] is not None and config["source"] is None:
        raise ValueError("alignment belongs to files of your own; give source and reference too.")


def _split(config: Config, trained: Trained) -> Task:
    splits = {key: prefix for key, prefix in trained.config["data"].items() if key not in ("name", "train") and prefix}
    name = str(config["split"])
    if name not in splits:
        raise ValueError(unknown("split", name, splits))
    out = Path(str(config["out"])) if config["out"] else trained.run.path / "evaluation" / name
    return Task(read_references(splits[name], trained.direction), alignment_file(splits[name], trained.direction), out)


def _own_files(config: Config, trained: Trained) -> Task:
    source_file = existing_file("source", config["source"])
    reference_file = existing_file("reference", config["reference"])
    source, reference = read_parallel(source_file, reference_file)
    warn_of_changes(reference_file, reference)
    out = Path(str(config["out"])) if config["out"] else trained.run.path / "evaluation" / "files" / source_file.stem
    gold = existing_file("alignment", config["alignment"]) if config["alignment"] else None
    return Task(Pairs([normalize(line) for line in source], reference), gold, out)


def _save(task: Task, hypotheses: list[str], record: dict[str, object]) -> None:
    task.out.mkdir(parents=True, exist_ok=True)
    (task.out / "hypotheses.txt").write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    rows = zip(sentence_scores(hypotheses, task.pairs.target), task.pairs.source, hypotheses, strict=True)
    table = "".join(f"{number}\t{chrf:.2f}\t{s}\t{h}\n" for number, (chrf, s, h) in enumerate(rows, start=1))
    (task.out / "sentences.tsv").write_text("line\tchrF2\tsource\thypothesis\n" + table, encoding="utf-8")
    write_json(task.out / "scores.json", record)


def _lines(number: int) -> str:
    return "1 line" if number == 1 else f"{number} lines"


def _range(bucket: Bucket) -> str:
    return f"{bucket.shortest} to {bucket.longest}" if bucket.longest is not None else f"{bucket.shortest} or more"


def _length_record(lengths: list[Bucket]) -> list[dict[str, object]]:
    return [
        {"words": [bucket.shortest, bucket.longest], "sentences": bucket.sentences, **scores_record([bucket.score])[0]}
        for bucket in lengths
    ]


def _aer_record(links: Links | None) -> dict[str, object]:
    return {"aer": {"value": round(links.aer, 4), "note": links.note}} if links else {}
