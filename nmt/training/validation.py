"""BLEU and sample translations during validation, at a limited cost; warns if the model has collapsed."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from nmt.config.nodes import make
from nmt.data.documents import read_documents
from nmt.data.example import Example
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import bind
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import headline_metrics
from nmt.runs.engine import longest_source
from nmt.runs.load import LoadedRun
from nmt.scoring.references import is_tokenized, read_references
from nmt.training.attention_probes import AttentionProbes, probe_pairs
from nmt.training.tensorboard import show_translations

logger = logging.getLogger(__name__)

_SAMPLES = 3
_COLLAPSED = 0.1


class ValidationBleu(Callback):
    """Logs `valid_bleu`, the BLEU of greedy translations of the first validation sentences, and shows a few of them.

    `documents` are the document numbers of these sentences, for a translator that reads context.

    Translating may take at most `max_time_fraction` of the wall time, which includes the time before a resume. A
    measurement that would exceed this is skipped and logged as NaN, except for the first and the last. Which ones are
    skipped depends on the clock, so if BLEU decides when to stop, use max_time_fraction = 1, which skips none.
    """

    def __init__(
        self,
        translator: Translator,
        sources: Sequence[str],
        references: Sequence[str],
        bleu: Callable[[Sequence[str], Sequence[str]], float],
        max_time_fraction: float,
        documents: Sequence[int] | None = None,
    ) -> None:
        self._translator, self._bleu, self._max_time_fraction = translator, bleu, max_time_fraction
        self._sources, self._references, self._documents = sources, references, documents
        self._start = time.monotonic()
        self._spent = self._latest = self._before = 0.0
        self._validations = 0

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start = time.monotonic()

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        bleu = self._measure(trainer, pl_module) if trainer.should_stop or self._affordable() else math.nan
        bleu = trainer.strategy.broadcast(bleu)
        pl_module.log("valid_bleu", bleu, rank_zero_only=True)

    def state_dict(self) -> dict[str, Any]:
        return {
            "validations": self._validations,
            "spent": self._spent,
            "latest": self._latest,
            "elapsed": self._elapsed(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._validations = state_dict["validations"]
        self._spent, self._latest, self._before = state_dict["spent"], state_dict["latest"], state_dict["elapsed"]

    def _elapsed(self) -> float:
        return self._before + time.monotonic() - self._start

    def _affordable(self) -> bool:
        # With a fraction of 1, the clock is ignored, so that a rounding error cannot cause a skip.
        return self._max_time_fraction == 1 or self._spent + self._latest <= self._max_time_fraction * self._elapsed()

    def _measure(self, trainer: Trainer, pl_module: LightningModule) -> float:
        if not trainer.is_global_zero:
            return math.nan
        start = time.monotonic()
        outputs = self._translator.translate(self._sources, documents=self._documents)
        self._latest = time.monotonic() - start
        self._spent += self._latest
        self._validations += 1
        self._show(trainer, outputs)
        return self._bleu(outputs, self._references)

    def _show(self, trainer: Trainer, outputs: Sequence[str]) -> None:
        step = trainer.global_step
        distinct = len(set(outputs))
        if self._validations > 1 and len(outputs) > 1 and distinct <= max(1, _COLLAPSED * len(outputs)):
            logger.warning(
                "step %d: the outputs have collapsed (%d sentences, distinct translations: %d); if this persists, "
                "lower optimizer.lr or raise schedule.warmup.",
                step,
                len(outputs),
                distinct,
            )
        samples = list(zip(self._sources, self._references, outputs, strict=True))[:_SAMPLES]
        show_translations(trainer, samples)
        for source, reference, output in samples:
            logger.info(
                "step %d\n  source      %s\n  reference   %s\n  hypothesis  %s", step, source, reference, output
            )


def translation_validations(run: LoadedRun, validation: Sequence[Example]) -> list[Callback]:
    """The callbacks for what a validation does besides computing the loss: BLEU and the attention probes."""
    settings = run.settings
    valid = read_references(
        settings.data.valid,
        settings.direction,
        settings.data.becomes_plain(settings.data.valid),
        run.tokenizers.target.tone_marks,
    )
    greedy = BeamSearch(beam_size=1, constraints=make(settings.search["constraints"]))
    documents = read_documents(settings.data.valid, settings.direction) if run.context_window.sentences else None
    translator = Translator(
        bind(greedy, run.model),
        run.tokenizers,
        batch_tokens=settings.batching.batch_tokens,
        max_source_tokens=longest_source(settings),
        window=run.context_window,
        source_language=settings.direction.source,
    )
    # The BLEU of corpus_scores without its confidence interval, whose 1,000 resamples take longer than translating.
    metric = headline_metrics(is_tokenized(settings.data.tokenized, valid.target))["BLEU"]

    def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
        return metric.corpus_score(hypotheses, [references]).score

    sentences = slice(settings.validation.sentences)
    # The metric that decides when to stop and which weights are best must not depend on the clock.
    fraction = 1.0 if settings.validation.monitor == "bleu" else settings.validation.max_time_fraction
    probes = probe_pairs(validation, settings.validation.probes)
    return [
        ValidationBleu(
            translator,
            valid.source[sentences],
            valid.target[sentences],
            bleu,
            fraction,
            documents and documents[sentences],
        ),
        AttentionProbes(run, probes),
    ]
