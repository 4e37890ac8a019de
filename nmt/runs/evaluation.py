"""The evaluation of a run on a test corpus: translations, scores, perplexity, alignment error, and warnings."""

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.schema import becomes_plain, training_prefixes
from nmt.data.cache import content_key, file_digest
from nmt.data.corpus import file_pair, iter_lines
from nmt.evaluation.buckets import Bucket, by_length, by_rarest_word, words_of
from nmt.evaluation.comet import Comet
from nmt.evaluation.sanity import hypothesis_warnings, looks_tokenized
from nmt.evaluation.scores import Score, all_metrics, corpus_scores, headline_metrics, sentence_scores
from nmt.files import write_json
from nmt.maps.links import Alignment
from nmt.pace import Pace
from nmt.runs.alignment_error import Gold, Links, alignment_error
from nmt.runs.forced_scores import Perplexity, log_probs, perplexity
from nmt.runs.load import Trained
from nmt.runs.record import scores_record
from nmt.runs.search import build_translator, longest_source, search_config
from nmt.text import detokenizer, normalize

logger = logging.getLogger(__name__)

_FORMER_MAX_SOURCE_TOKENS = 256
"""What evaluations read of a line before there was a choice: with as much, their keys are still those of then."""

_SACREBLEU_SEED = "12345"
"""What sacrebleu resamples with where the environment has no SACREBLEU_SEED."""


@dataclass(frozen=True)
class Task:
    """What is scored: normalised sources, references as they stand, gold alignments if there are any; and where to."""

    sources: list[str]
    references: list[list[str]]
    """One or more lists with a reference for each source."""
    gold: Gold | None
    valid_gold: Gold | None
    """On which row, layer and head of the alignments are chosen."""
    out: Path
    tokenized: bool
    """Whether the references are tokenised already, so that BLEU is over their own tokens."""

    def __post_init__(self) -> None:
        for lines in self.references:
            if len(lines) != len(self.sources):
                raise ValueError(
                    f"{len(self.sources)} sources but {len(lines)} references: they must be the same lines."
                )


class Evaluation(NamedTuple):
    """What came out, in the order of the sources."""

    hypotheses: list[str]
    scores: list[Score]
    lengths: list[Bucket]
    rarities: list[Bucket]
    """Empty where the training corpus is not at hand."""
    links: Links | None
    perplexity: Perplexity
    """Of the first references."""
    sentences_per_second: float


def evaluate_runs(
    runs: Sequence[Trained],
    task: Task,
    search: Mapping[str, Any] | None = None,
    batch_tokens: int = 4096,
    *,
    max_source_tokens: int | None = None,
    minimum_bayes_risk: bool = False,
    comet: Comet | None = None,
) -> Evaluation:
    """Translates and scores, logs warnings, and writes all of it to the task's folder.

    Alignments are those of a single run, COMET looks at the first references. The folder gets hypotheses.txt,
    sentences.tsv, sentences.jsonl and scores.json.
    """
    translator = build_translator(runs, search, batch_tokens, max_source_tokens, minimum_bayes_risk)
    start = time.monotonic()
    hypotheses = translator.translate(task.sources, report=Pace("sentences translated"))
    seconds = time.monotonic() - start
    for sentence in hypothesis_warnings(hypotheses, task.sources, task.references[0]):
        logger.warning("%s", sentence)
    headline = {"BLEU": headline_metrics(task.tokenized)["BLEU"]}
    counts = training_counts(runs[0])
    gold = task.gold if len(runs) == 1 else None
    if task.gold and not gold:
        logger.info("No alignment error rate: %d runs have %d different alignments", len(runs), len(runs))
    found = Evaluation(
        hypotheses,
        _scores(task, hypotheses, runs[0].direction.target, comet),
        by_length(hypotheses, task.references, task.sources, headline),
        by_rarest_word(hypotheses, task.references, task.sources, counts, headline) if counts else [],
        alignment_error(runs[0], gold, task.valid_gold, batch_tokens) if gold else None,
        perplexity(log_probs(runs, task.sources, task.references[0], batch_tokens), runs[0], task.references[0]),
        len(hypotheses) / seconds,
    )
    save(task, found, conditions(runs, task, search, batch_tokens, max_source_tokens, minimum_bayes_risk))
    logger.info("Written to %s", task.out)
    return found


def _scores(task: Task, hypotheses: Sequence[str], language: str, comet: Comet | None) -> list[Score]:
    scores = corpus_scores(hypotheses, task.references, all_metrics(task.tokenized))
    if task.tokenized or looks_tokenized(task.references[0]):
        scores.append(plain_text_bleu(hypotheses, task.references, language))
    if comet:
        scores.append(comet(task.sources, hypotheses, task.references[0]))
    return scores


def plain_text_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str) -> Score:
    """BLEU of plain text where the references are tokens: both sides are detokenised."""
    plain = detokenizer(language)
    [score] = corpus_scores(
        [plain(line) for line in hypotheses],
        [[plain(line) for line in lines] for lines in references],
        {"BLEU detokenized": headline_metrics(tokenized=False)["BLEU"]},
    )
    return score._replace(signature=f"{score.signature}|detok:sacremoses-{version('sacremoses')}")


def conditions(
    runs: Sequence[Trained],
    task: Task,
    search: Mapping[str, Any] | None = None,
    batch_tokens: int = 4096,
    max_source_tokens: int | None = None,
    minimum_bayes_risk: bool = False,
) -> dict[str, Any]:
    """What the figures depend on; 'made_with' is a key of all of it, of the weights, sources and references too."""
    found = {
        "search": search_config(runs[0].config["search"], search or {}),
        "minimum_bayes_risk": minimum_bayes_risk,
        "batch_tokens": batch_tokens,
        "device": runs[0].device.type,
    }
    weights = [file_digest(run.run.weights) for run in runs]
    precision = runs[0].precision
    # Without what evaluations of before there was a choice were made with.
    keyed = found if precision == "float32" else found | {"precision": precision}
    longest = max_source_tokens or longest_source(runs[0].config)
    if longest != _FORMER_MAX_SOURCE_TOKENS:
        keyed = keyed | {"max_source_tokens": longest}
    if task.tokenized != looks_tokenized(task.references[0]):
        keyed = keyed | {"tokenized": task.tokenized}
    if task.gold:
        golds = [gold for gold in (task.gold, task.valid_gold) if gold]
        keyed = keyed | {"gold": [(gold.pairs, _sorted_links(gold.alignments)) for gold in golds]}
    if (seed := os.environ.get("SACREBLEU_SEED", _SACREBLEU_SEED)) != _SACREBLEU_SEED:
        keyed = keyed | {"seed": seed}
    made_with = content_key([keyed, weights, task.sources, task.references])
    more = {"precision": precision, "max_source_tokens": longest, "made_with": made_with}
    return {"runs": [str(run.run.path) for run in runs], **found, **more}


def _sorted_links(alignments: Sequence[Alignment]) -> list[Any]:
    return [(sorted(each.sure), sorted(each.possible)) for each in alignments]


def training_counts(trained: Trained) -> Counter[str]:
    """How often each source word occurs in the run's training corpus; empty where a file of it is not at hand."""
    data = trained.config["data"]
    prefixes = [str(prefix) for prefix in training_prefixes(data)]
    files = [file_pair(prefix, trained.direction)[0] for prefix in prefixes]
    if not all(file.is_file() for file in files):
        return Counter()
    counts = Counter[str]()
    for prefix, file in zip(prefixes, files, strict=True):
        # Made only where it is needed, because that takes half a second.
        plain = detokenizer(trained.direction.source) if becomes_plain(data, prefix) else str
        for line in iter_lines(file):
            counts.update(words_of(normalize(plain(line))))
    return counts


def save(task: Task, found: Evaluation, under: Mapping[str, Any]) -> None:
    """Writes the hypotheses, chrF of each line, and all figures with their conditions."""
    task.out.mkdir(parents=True, exist_ok=True)
    (task.out / "hypotheses.txt").write_text("".join(f"{line}\n" for line in found.hypotheses), encoding="utf-8")
    _save_sentences(task, found.hypotheses)
    record: dict[str, Any] = {
        **under,
        "scores": scores_record(found.scores),
        "by_length": _buckets(found.lengths, "words"),
        "by_rarest_word": _buckets(found.rarities, "occurrences"),
        "perplexity": found.perplexity.record(),
        "sentences_per_second": round(found.sentences_per_second, 2),
    }
    if found.links:
        record["aer"] = {
            "value": round(found.links.rates.aer, 4),
            "precision": round(found.links.rates.precision, 4),
            "recall": round(found.links.rates.recall, 4),
            "diagonal": round(found.links.diagonal.aer, 4),
            "note": found.links.note,
        }
    write_json(task.out / "scores.json", record)


def _save_sentences(task: Task, hypotheses: Sequence[str]) -> None:
    """A row for each line, as a table and as JSON, which has the references too."""
    rows = [
        {"line": number, "chrF2": round(chrf, 2), "source": source, "hypothesis": hypothesis, "references": references}
        for number, (chrf, source, hypothesis, *references) in enumerate(
            zip(sentence_scores(hypotheses, task.references), task.sources, hypotheses, *task.references, strict=True),
            start=1,
        )
    ]
    columns = ("line", "chrF2", "source", "hypothesis")
    table = ["\t".join(columns), *("\t".join(str(row[column]) for column in columns) for row in rows)]
    (task.out / "sentences.tsv").write_text("".join(f"{line}\n" for line in table), encoding="utf-8")
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (task.out / "sentences.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _buckets(buckets: Sequence[Bucket], unit: str) -> list[dict[str, Any]]:
    return [
        {unit: [bucket.least, bucket.most], "sentences": bucket.sentences, **scores_record([bucket.score])[0]}
        for bucket in buckets
    ]
