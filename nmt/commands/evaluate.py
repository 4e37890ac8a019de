"""nmt.evaluate: the scores of a finished run on a split of its corpus or on the user's own files."""

from functools import partial

from nmt.commands.evaluate_settings import EvaluateSettings
from nmt.config.job import Job
from nmt.errors import CheckFailed, Mistake
from nmt.evaluation.buckets import Bucket
from nmt.evaluation.comet import Comet
from nmt.exports.engines import load_with_engine
from nmt.scoring.run_scores import TranslationOptions, score_runs
from nmt.scoring.test_sets import chosen_test_set


def evaluate(job: Job[EvaluateSettings]) -> None:
    """Prints and saves all scores with signatures and intervals, BLEU by group, perplexity and alignment error rate.

    Raises CheckFailed if `expect` is given and the headline score differs from it by more than `band`.
    """
    settings = job.settings
    number = len(settings.run_dir)
    if number > 1 and settings.out is None:
        raise Mistake("An ensemble has no folder of its own; set out=FOLDER.")
    if number > 1 and settings.alignment is not None:
        raise Mistake(
            f"alignment is given, but each of the {number} runs aligns in its own way: use one run_dir, or leave out "
            "alignment."
        )
    runs, engine = load_with_engine(settings.run_dir, settings.device, settings.precision, settings.engine)
    test_set = chosen_test_set(
        runs[0],
        split=settings.split,
        source=settings.source,
        reference=settings.reference,
        alignment=settings.alignment,
        out=settings.out,
        documents=settings.documents,
    )
    comet = partial(Comet, settings.comet, gpu=runs[0].device.type == "cuda") if settings.comet else None
    options = TranslationOptions(
        search=settings.search,
        batch_tokens=settings.batch_tokens,
        max_source_tokens=settings.max_source_tokens,
        minimum_bayes_risk=settings.minimum_bayes_risk,
        engine=engine,
        verbatim=settings.verbatim,
    )
    result = score_runs(runs, test_set, options, workers=settings.workers, comet=comet, command=job.command)
    width = max(len(score.name) for score in result.scores)
    for score in result.scores:
        print(f"{score.name:{width}} {score.figures()}")
    for bucket in result.lengths:
        print(_bucket_line(bucket, "sources of {} words"))
    for bucket in result.rarities:
        print(_bucket_line(bucket, "sources whose rarest word occurs {} times in training"))
    perplexity = result.perplexity
    print(
        f"Perplexity per piece {perplexity.piece:.3f}, per word {perplexity.word:.3f}, "
        f"per character {perplexity.character:.4f}"
    )
    if result.alignment:
        rates = result.alignment.rates
        print(f"AER {rates.aer:.3f}, precision {rates.precision:.3f}, recall {rates.recall:.3f}")
        print(f"  {result.alignment.note}")
    # At the end, and each once: they are longer than a line of most terminals.
    names_by_signature: dict[str, list[str]] = {}
    for score in result.scores:
        names_by_signature.setdefault(score.signature, []).append(score.name)
    print("\nSignatures:")
    for signature, names in names_by_signature.items():
        print(f"{', '.join(names)}\n  {signature}")
    if settings.expect is not None:
        check_band(result.scores[0].value, settings.expect, settings.band)


def check_band(value: float, expected: float, band: float) -> None:
    """Prints that a score is at most `band` from the expected one, or raises CheckFailed."""
    where = f"{value:.2f} is {abs(value - expected):.2f} from the expected {expected:.2f}"
    if not abs(value - expected) <= band:  # also if a value is NaN
        raise CheckFailed(f"outside: {where}, more than {band:.2f}")
    print(f"inside: {where}, at most {band:.2f}")


def _bucket_line(bucket: Bucket, group: str) -> str:
    ends = f"{bucket.least} to {bucket.most}" if bucket.most is not None else f"{bucket.least} or more"
    ends = str(bucket.least) if bucket.least == bucket.most else ends
    lines = "1 line" if bucket.sentences == 1 else f"{bucket.sentences} lines"
    return f"{bucket.score.name} of {group.format(ends)} {bucket.score.value:.2f} ({lines})"
