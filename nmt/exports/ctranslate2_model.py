"""Runs an exported model with CTranslate2, whose beam search takes the place of ours."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ctranslate2

from nmt.config.nodes import Node, make
from nmt.cores import threads_of_process, usable_cores
from nmt.decoding.id_search import Hypothesis, IdBatch, Search, SearchTraits
from nmt.decoding.search_settings import BEAM_SEARCH, BeamSettings
from nmt.errors import Mistake
from nmt.exports.damage import DamagedExport
from nmt.exports.positions import POSITIONS
from nmt.runs.engine import Engine
from nmt.text.tokenizer import BOS, PAD, UNK, TokenizerPair

ctranslate2.set_log_level(logging.ERROR)

# These classes hold the same settings, and import no torch.
_SETTINGS = {
    BEAM_SEARCH: "nmt.decoding.search_settings.BeamSettings",
    "nmt.decoding.constraints.Constraints": "nmt.decoding.search_settings.ConstraintSettings",
}
_ONLY_BEAMS = "engine=ctranslate2 supports only beam search, not search={}: use engine=torch or onnx."


class CTranslate2Model:
    """A model in CTranslate2's format, with the vocabularies of its run. It runs only whole searches, no single steps.

    On a CPU, up to `threads` batches are searched in parallel, one thread each: they need fewer CPU seconds than one
    after the other with all threads. CTranslate2 fixes the threads of a search when it loads the model, so a single
    batch, such as one line, also has one thread.

    Raises DamagedExport, naming the folder, if CTranslate2 cannot load it.
    """

    max_source: int | None = POSITIONS
    max_target: int | None = POSITIONS

    def __init__(self, folder: Path, tokenizers: TokenizerPair, device: str, threads: int) -> None:
        self.device, self.at_once = device, threads if device == "cpu" else 1
        try:
            self.translator = ctranslate2.Translator(
                str(folder),
                device=device,
                compute_type="default",
                inter_threads=self.at_once,
                intra_threads=threads // self.at_once,
            )
        except RuntimeError as error:
            if device != "cpu" and _loads_on_the_cpu(folder):
                raise Mistake(
                    f"CTranslate2 cannot use the GPU ({error}): add device=cpu, or use engine=torch."
                ) from error
            raise DamagedExport(f"CTranslate2 cannot load {folder} ({error}): export the run again.") from error
        self._source, self._target = (tokenizer.pieces(range(tokenizer.size)) for tokenizer in tokenizers)
        self._target_ids = {piece: number for number, piece in enumerate(self._target)}

    def search(self, node: Node) -> Search:
        """The beam search that a node describes. Raises Mistake for a search that CTranslate2 does not support."""
        if node.get("_target_") != BEAM_SEARCH:
            kind = str(node.get("_target_")).rpartition(".")[2].lower()
            raise Mistake(_ONLY_BEAMS.format(kind))
        return self.bind(make(_without_tensors(node), BeamSettings))

    def bind(self, algorithm: SearchTraits) -> Search:
        """A beam search with this model. Raises Mistake for an algorithm that CTranslate2 does not support."""
        if not isinstance(algorithm, BeamSettings):
            raise Mistake(_ONLY_BEAMS.format(type(algorithm).__name__.lower()))
        if algorithm.coverage_penalty:
            raise Mistake(
                f"search.coverage_penalty is {algorithm.coverage_penalty}, which engine=ctranslate2 does not support: "
                "set it to 0, or use engine=torch or onnx."
            )
        return Search(algorithm, self.max_source, _Find(self, algorithm), self.at_once)

    def forced_log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """log p of each target piece and of EOS, in nats. The ids contain neither BOS nor EOS."""
        scored = self.translator.score_batch(
            self.source_pieces(sources),
            self.target_pieces(targets),
            max_batch_size=2048,
            batch_type="tokens",
            max_input_length=0,  # CTranslate2 imposes no limit
        )
        return [list(of_pair.log_probs) for of_pair in scored]

    def source_pieces(self, sentences: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self._source[i] for i in ids] for ids in sentences]

    def target_pieces(self, sentences: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self._target[i] for i in ids] for ids in sentences]

    def target_ids(self, pieces: Sequence[str]) -> list[int]:
        return [self._target_ids[piece] for piece in pieces]


def ctranslate2_engine(tokenizers: TokenizerPair, folder: Path, precision: str, device: str) -> Engine:
    """CTranslate2 with the export in a folder. Raises DamagedExport if CTranslate2 cannot load it."""
    model = CTranslate2Model(folder, tokenizers, device, threads_of_process(usable_cores()))
    return Engine(
        name="ctranslate2",
        precision=precision,
        device=device,
        max_source=model.max_source,
        max_target=model.max_target,
        bind=model.search,
        forced_log_probs=model.forced_log_probs,
    )


class _Scored(NamedTuple):
    """A hypothesis before our length penalty."""

    ids: list[int]
    log_prob: float


class _Find:
    """A beam search that CTranslate2 runs without a length penalty, because its penalty differs from ours.

    Our length penalty then ranks the hypotheses.
    """

    def __init__(self, model: CTranslate2Model, beam: BeamSettings) -> None:
        self.model, self.beam, self.constraints = model, beam, beam.constraints
        # When CTranslate2 blocks pieces, it scales up the probabilities of all others.
        self.blocks_pieces = beam.constraints.no_repeat_ngram > 0 or beam.constraints.min_length > 1

    def __call__(self, batch: IdBatch, observe: Any) -> list[list[Hypothesis]]:
        if any(batch.earlier or ()):
            raise ValueError("CTranslate2 reads single sentences; leave out the context.")
        sources, starts = batch.sources, batch.prefixes or [[] for _ in batch.sources]
        limits = [  # without EOS
            self.constraints.limit(len(source) + 1, len(start), self.model.max_target) - 1
            for source, start in zip(sources, starts, strict=True)
        ]
        beams = self._search(sources, starts, max(limits))
        # CTranslate2 has one length limit for the whole batch. In practice, only translations stuck in a repetition
        # exceed their sentence's own limit; those sentences are searched again.
        longer = [i for i, beam in enumerate(beams) if any(len(hypothesis.ids) > limits[i] for hypothesis in beam)]
        for limit in {limits[i] for i in longer}:
            again = [i for i in longer if limits[i] == limit]
            shorter = self._search([sources[i] for i in again], [starts[i] for i in again], limit)
            for index, beam in zip(again, shorter, strict=True):
                beams[index] = beam
        return self._ranked(sources, beams, limits)

    def _search(
        self, sources: Sequence[Sequence[int]], starts: Sequence[Sequence[int]], limit: int
    ) -> list[list[_Scored]]:
        """The hypotheses that CTranslate2 finds, with at most `limit` pieces before EOS."""
        model = self.model
        if limit < 1:  # CTranslate2 writes at least one piece
            return [[_Scored([], sum(row))] for row in model.forced_log_probs(sources, [[]] * len(sources))]
        results = model.translator.translate_batch(
            model.source_pieces(sources),
            model.target_pieces(starts) if any(starts) else None,
            beam_size=self.beam.beam_size,
            num_hypotheses=self.beam.beam_size,
            length_penalty=0,
            no_repeat_ngram_size=self.constraints.no_repeat_ngram,
            max_input_length=0,
            min_decoding_length=self.constraints.min_length - 1,
            max_decoding_length=limit,
            return_scores=True,
        )
        of_prefixes = [0.0] * len(sources)  # log p of the prefix, which CTranslate2's scores leave out
        if any(starts):
            of_prefixes = [sum(row[:-1]) for row in model.forced_log_probs(sources, starts)]
        return [
            [
                _Scored(model.target_ids(pieces), log_prob + of_prefix)
                for pieces, log_prob in zip(result.hypotheses, result.scores, strict=True)
            ]
            for result, of_prefix in zip(results, of_prefixes, strict=True)
        ]

    def _ranked(
        self, sources: Sequence[Sequence[int]], beams: Sequence[Sequence[_Scored]], limits: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence with the scores of our search, best first."""
        # CTranslate2 could block these pieces, but would then change the probabilities of all other pieces.
        usual = [
            [hypothesis for hypothesis in beam if not {PAD, UNK, BOS} & set(hypothesis.ids)] or [*beam]
            for beam in beams
        ]
        # Score these again: a hypothesis cut at the maximum length has no EOS, and see `blocks_pieces`.
        inexact = [
            (sentence, rank)
            for sentence, beam in enumerate(usual)
            for rank, hypothesis in enumerate(beam)
            if self.blocks_pieces or len(hypothesis.ids) == limits[sentence]
        ]
        if inexact:
            rows = self.model.forced_log_probs(
                [sources[sentence] for sentence, _ in inexact],
                [usual[sentence][rank].ids for sentence, rank in inexact],
            )
            for (sentence, rank), row in zip(inexact, rows, strict=True):
                usual[sentence][rank] = usual[sentence][rank]._replace(log_prob=sum(row))
        complete = [
            [Hypothesis(ids, log_prob, log_prob / self.beam.length_factor(len(ids) + 1)) for ids, log_prob in beam]
            for beam in usual
        ]
        return [sorted(beam, key=lambda hypothesis: -hypothesis.score)[: self.beam.n_best] for beam in complete]


def _without_tensors(node: Node) -> Node:
    """The node with classes that only hold its settings."""
    inner = {key: _without_tensors(value) if isinstance(value, dict) else value for key, value in node.items()}
    return inner | {"_target_": _SETTINGS.get(kind, kind)} if (kind := node.get("_target_")) else inner


def _loads_on_the_cpu(folder: Path) -> bool:
    try:
        ctranslate2.Translator(str(folder), device="cpu")
    except RuntimeError:
        return False
    return True
