"""Scores a run on a test set: translations, scores, perplexity, alignment error, and warnings."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from nmt.config.stored import Number, Stored, read_stored
from nmt.data.cache import content_key, file_digest
from nmt.decoding.beam import BeamSearch
from nmt.decoding.translatable import UnknownLines
from nmt.decoding.translator import Translator
from nmt.errors import MissingFile, Mistake
from nmt.evaluation.buckets import Bucket, by_length, by_rarest_word
from nmt.evaluation.comet import Comet
from nmt.evaluation.sanity import hypothesis_warnings, looks_tokenized
from nmt.evaluation.score_record import Score, ScoreRecord
from nmt.evaluation.scores import all_metrics, corpus_scores, headline_metrics, resampling_seed, sentence_scores
from nmt.files import remove_abandoned_parts, write_json, write_text
from nmt.pace import Pace
from nmt.runs.engine import Engine, longest_source, search_config
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.scoring.alignment_error import AlignmentQuality, alignment_error
from nmt.scoring.forced_scores import Perplexity, log_probs, perplexity
from nmt.scoring.test_sets import SENTENCES, TestSet, split_test_set
from nmt.scoring.training_words import training_counts
from nmt.text import detokenizer
from nmt.text.lines import read_lines

logger = logging.getLogger(__name__)

HYPOTHESES, TABLE, SCORES = "hypotheses.txt", "sentences.tsv", "scores.json"
# The conditions that decide which translations a run makes.
_TRANSLATED_WITH = (
    *("weights_sha256", "search", "search_revision", "minimum_bayes_risk", "verbatim", "max_source_tokens"),
    *("precision", "engine", "dictionary_sha256"),
)


class RunScores(NamedTuple):
    """Translations in the order of the sources, and what was measured on them."""

    hypotheses: list[str]
    scores: list[Score]
    lengths: list[Bucket]
    rarities: list[Bucket]
    """Empty if the training corpus is not available."""
    alignment: AlignmentQuality | None
    perplexity: Perplexity
    """The perplexity of the first list of references."""
    sentences_per_second: float


class TranslationOptions(NamedTuple):
    """How a test set is translated; by default with the run's own search, and with torch. See `build_translator`."""

    search: Mapping[str, Any] | None = None
    batch_tokens: int = 4096
    max_source_tokens: int | None = None
    minimum_bayes_risk: bool = False
    engine: Engine | None = None
    verbatim: bool = False


_USUAL = TranslationOptions()


def score_runs(
    runs: Sequence[LoadedRun],
    test_set: TestSet,
    options: TranslationOptions = _USUAL,
    *,
    workers: int = 1,
    comet: Callable[[], Comet] | None = None,
    cache_dir: Path | None = None,
    command: str | None = None,
) -> RunScores:
    """Translates and scores a test set, logs warnings, and writes the results to the test set's output folder.

    The files are hypotheses.txt, sentences.tsv, sentences.jsonl and scores.json. An ensemble has no alignment error
    rate. COMET, perplexity and warnings use only the first list of references. `comet` loads its model, and is called
    once everything else has been checked. `cache_dir` is for `training_counts`. `command` is recorded as the command
    that made the scores.
    """
    resampling_seed()  # checked before the search
    translator = build_translator(runs, **options._asdict(), workers=workers)
    counts = training_counts(runs[0], cache_dir)  # before the search: a text that cannot be read ends the command
    if not counts:
        logger.info("No scores by rarest word: the training corpus of %s is missing", runs[0].directory.path)
    comet_score = comet() if comet else None
    gold = test_set.gold if len(runs) == 1 else None
    if test_set.gold and not gold:
        logger.info("No alignment error rate: each of the %d runs aligns in its own way", len(runs))
    # It reads the references, not the translations, so what is wrong with the alignments is found before the search.
    alignment = alignment_error(runs[0], gold, test_set.valid_gold, options.batch_tokens) if gold else None
    hypotheses, seconds = _translated(translator, test_set)
    headline = {"BLEU": headline_metrics(test_set.tokenized)["BLEU"]}
    scores = corpus_scores(hypotheses, test_set.references, all_metrics(test_set.tokenized))
    if test_set.tokenized or looks_tokenized(test_set.references[0]):
        scores.append(plain_text_bleu(hypotheses, test_set.references, runs[0].direction.target))
    if comet_score:
        scores.append(comet_score(test_set.sources, hypotheses, test_set.references[0]))
    log_probs_of_lines = log_probs(
        runs,
        test_set.sources,
        test_set.references[0],
        options.batch_tokens,
        documents=test_set.documents,
        verbatim=options.verbatim,
    )
    texts = hypotheses, test_set.references, test_set.sources
    result = RunScores(
        hypotheses=hypotheses,
        scores=scores,
        lengths=by_length(*texts, headline),
        rarities=by_rarest_word(*texts, counts, headline) if counts else [],
        alignment=alignment,
        perplexity=perplexity(log_probs_of_lines, runs[0], test_set.references[0]),
        sentences_per_second=len(hypotheses) / seconds,
    )
    made = conditions(runs, test_set, options)
    _save(test_set, result, {"command": command, "test_set": test_set.origin, **made, "workers": workers})
    logger.info("Written to %s", test_set.out)
    return result


def _translated(translator: Translator, test_set: TestSet) -> tuple[list[str], float]:
    """The best translation of each source, and the seconds that the search took; logs what looks wrong with them."""
    start = time.monotonic()
    translated = translator.translated_lines(
        test_set.sources, report=Pace("sentences translated"), documents=test_set.documents
    )
    seconds = time.monotonic() - start
    translator.close()
    hypotheses, unknown = [line.best for line in translated], UnknownLines()
    for number, line in enumerate(translated, start=1):
        unknown.note(number, line.unknown_characters)
    if unknown.lines:
        logger.warning("%s", unknown.warning)
    for sentence in hypothesis_warnings(hypotheses, test_set.sources, test_set.references[0]):
        logger.warning("%s", sentence)
    return hypotheses, seconds


def score_test_split(run: LoadedRun, cache_dir: Path | None = None) -> list[Score]:
    """Scores a run on its test split and returns the scores, or an empty list if it has none or its files are gone.

    `cache_dir` is for `training_counts`.
    """
    if "test" not in run.settings.data.held_out:
        return []
    try:
        test_set = split_test_set(run, "test")
    except MissingFile as error:
        logger.warning("%s is not scored on its test split. %s", run.directory.path, error)
        return []
    logger.info("Scoring the test split")
    return score_runs([run], test_set, cache_dir=cache_dir, command=run.directory.metrics().get("command")).scores


def plain_text_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str) -> Score:
    """BLEU of the detokenized hypotheses against the detokenized references, for references that are tokenized."""
    plain = detokenizer(language)
    [score] = corpus_scores(
        [plain(line) for line in hypotheses],
        [[plain(line) for line in lines] for lines in references],
        {"BLEU detokenized": headline_metrics(tokenized=False)["BLEU"]},
    )
    return score._replace(signature=f"{score.signature}|detok:sacremoses-{version('sacremoses')}")


def conditions(runs: Sequence[LoadedRun], test_set: TestSet, options: TranslationOptions = _USUAL) -> dict[str, Any]:
    """The conditions under which the scores were computed.

    `made_with` is a hash of these and of what they were applied to, such as the weights, sources and references.
    """
    weights = [file_digest(run.directory.weights) for run in runs]
    settings = {
        "search": search_config(runs[0].settings.search, options.search or {}),
        "search_revision": BeamSearch.revision,
        "minimum_bayes_risk": options.minimum_bayes_risk,
        "verbatim": options.verbatim,
        **({"dictionary_sha256": runs[0].dictionary.digest} if runs[0].dictionary and not options.verbatim else {}),
        "batch_tokens": options.batch_tokens,
        "max_source_tokens": options.max_source_tokens or longest_source(runs[0].settings),
        "device": runs[0].device.type,
        "precision": runs[0].precision,
    }
    if (engine := options.engine) is not None:
        settings |= {"engine": engine.name, "precision": engine.precision, "device": engine.device}
    hashed = [
        settings,
        weights,
        test_set.sources,
        test_set.references,
        test_set.tokenized,
        *([test_set.documents] if test_set.documents is not None else []),
        [
            (gold.pairs, [(sorted(links.sure), sorted(links.possible)) for links in gold.alignments])
            for gold in (test_set.gold, test_set.valid_gold)
            if gold
        ],
        str(resampling_seed()),
    ]
    return {
        "runs": [str(run.directory.path) for run in runs],
        "weights_sha256": weights,
        **settings,
        "made_with": content_key(hashed),
    }


def _save(test_set: TestSet, result: RunScores, settings: Mapping[str, Any]) -> None:
    """Writes the hypotheses, then chrF of each line, and finally all scores with the settings of the search."""
    test_set.out.mkdir(parents=True, exist_ok=True)
    for name in (HYPOTHESES, TABLE, SENTENCES):  # write_json does it for the scores
        remove_abandoned_parts(test_set.out, name)
    # An interruption must not leave earlier scores next to these hypotheses.
    (test_set.out / SCORES).unlink(missing_ok=True)
    write_text(test_set.out / HYPOTHESES, "".join(f"{line}\n" for line in result.hypotheses))
    _save_sentences(test_set, result.hypotheses)
    record: dict[str, Any] = {
        **settings,
        "scores": [score.record() for score in result.scores],
        "by_length": _buckets(result.lengths, "words"),
        "by_rarest_word": _buckets(result.rarities, "occurrences"),
        "perplexity": result.perplexity.record(),
        "sentences_per_second": round(result.sentences_per_second, 2),
    }
    if result.alignment:
        record["aer"] = {
            "value": round(result.alignment.rates.aer, 4),
            "precision": round(result.alignment.rates.precision, 4),
            "recall": round(result.alignment.rates.recall, 4),
            "diagonal": round(result.alignment.diagonal.aer, 4),
            "note": result.alignment.note,
        }
    write_json(test_set.out / SCORES, record)


class _StoredAer(Stored):
    value: Number


class _StoredScores(Stored):
    """What is read of scores.json."""

    scores: Annotated[list[ScoreRecord], Field(min_length=1)]
    perplexity: dict[str, Number | None] = Field({})
    aer: _StoredAer | None = None
    sentences_per_second: Number | None = None


def stored_scores(run: LoadedRun, test_set: TestSet) -> tuple[list[str], dict[str, Any]] | None:
    """The translations and scores in the test set's folder; None if they must be made again, with a warning if damaged.

    BLEU and chrF2 are computed again from the translations. It does not check that the run still produces these
    translations.
    """
    file, hypotheses_file = test_set.out / SCORES, test_set.out / HYPOTHESES
    if not file.is_file() or not hypotheses_file.is_file():
        return None
    try:
        recorded = read_stored(file, _StoredScores)
        now = conditions([run], test_set)
        # Without the corpus, its hash cannot be made: the gold alignments that the scores were made with are gone too.
        decisive = _TRANSLATED_WITH if test_set.stored else ("made_with",)
        if any(recorded.get(key) != now.get(key) for key in decisive):
            return None
        hypotheses = read_lines(hypotheses_file)
        if len(hypotheses) != len(test_set.sources):
            raise Mistake(
                f"{hypotheses_file} has {len(hypotheses)} lines, but the test set has {len(test_set.sources)}."
            )
        again = corpus_scores(hypotheses, test_set.references, headline_metrics(test_set.tokenized))
        figures = {record["name"]: [record["value"], *record["interval"]] for record in recorded["scores"]}
        for score in again:
            computed = score.record()
            compared = 1 if resampling_seed() is None else 3  # without a seed, every interval is different
            if figures.get(score.name, [])[:compared] != [computed["value"], *computed["interval"]][:compared]:
                raise Mistake(
                    f"{file} does not have the {score.name} of {hypotheses_file}, which is {score.figures()}."
                )
    except Mistake as error:
        logger.warning("%s The stored scores are not used.", error)
        return None
    logger.info(
        "%s was not translated again: BLEU and chrF2 are those of the translations in %s, and the other scores those "
        "in %s. To translate again, run nmt.evaluate.",
        run.directory.path,
        hypotheses_file,
        file,
    )
    return hypotheses, recorded


def _save_sentences(test_set: TestSet, hypotheses: Sequence[str]) -> None:
    """Writes one row per line, as a table and as JSON; only the JSON contains the references."""
    documents = test_set.documents
    rows = [
        {
            "line": number,
            **({} if documents is None else {"document": documents[number - 1]}),
            "chrF2": round(chrf, 2),
            "source": source,
            "hypothesis": hypothesis,
            "references": references,
        }
        for number, (chrf, source, hypothesis, *references) in enumerate(
            zip(
                sentence_scores(hypotheses, test_set.references),
                test_set.sources,
                hypotheses,
                *test_set.references,
                strict=True,
            ),
            start=1,
        )
    ]
    columns = ("line", "chrF2", "source", "hypothesis")
    table = ["\t".join(columns), *("\t".join(str(row[column]) for column in columns) for row in rows)]
    write_text(test_set.out / TABLE, "".join(f"{line}\n" for line in table))
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    write_text(test_set.out / SENTENCES, "".join(f"{line}\n" for line in lines))


def _buckets(buckets: Sequence[Bucket], unit: str) -> list[dict[str, Any]]:
    return [
        {unit: [bucket.least, bucket.most], "sentences": bucket.sentences, **bucket.score.record()}
        for bucket in buckets
    ]
