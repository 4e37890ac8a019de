"""A sentence model for documents: its encoder, its decoder or both are followed by attention to earlier sentences."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention
from nmt.errors import Mistake
from nmt.models.base import Annotations, Embedded, ReadableContext, Seq2Seq, SourceMask, Target, Watch
from nmt.models.hierarchical import EarlierSentences, HierarchicalAttention


class Memory(NamedTuple):
    """The sentence model's Memory, and the earlier target sentences, or () if the decoder reads none."""

    sentence: Any
    earlier: EarlierSentences | tuple[()]


class DocumentModel(Seq2Seq):
    """A sentence model whose states also attend to earlier sentences (Miculicich et al. 2018, section 3).

    With a context at the encoder, the annotations attend to the annotations of earlier source sentences before the
    decoder reads them. With one at the decoder, the inputs of the output layer attend to the corresponding inputs of
    earlier target sentences, which are the references in training and the model's own translations in search. The
    states of earlier sentences are computed by the sentence model alone. If there are no earlier sentences, the
    probabilities are exactly those of the sentence model.

    Where the paper uses the states of the decoder's last layer, this model uses the inputs of the output layer, which
    `advance_features` returns. Deviation: gradients also flow into the states of the earlier sentences.
    """

    def __init__(
        self,
        sentence: Seq2Seq,
        encoder: Callable[..., HierarchicalAttention] | None,
        decoder: Callable[..., HierarchicalAttention] | None,
        *,
        ffn_dim: int,
        num_heads: int,
        dropout: float,
    ) -> None:
        super().__init__()
        if encoder is None and decoder is None:
            raise Mistake(
                "context.model.encoder and context.model.decoder are both null, so no earlier sentence is read: set "
                "one, or use context=none."
            )
        self.sentence, self.annotation_dim = sentence, sentence.annotation_dim
        sizes = {"ffn_dim": ffn_dim, "num_heads": num_heads, "dropout": dropout}
        self.encoder_context = encoder and encoder(dim=sentence.annotation_dim, **sizes)
        self.decoder_context = decoder and decoder(dim=sentence.output.in_features, **sizes)
        reads = {
            "encoder": "every source position after the encoder",
            "decoder": "every target position before the output layer",
        }
        self.queries = {
            **sentence.queries,
            **{
                f"{side}_words": f"{reads[side]}, attending to the words of earlier sentences"
                for side in self._contexts
            },
            **{f"{side}_sentences": f"{reads[side]}, attending to earlier sentences" for side in self._contexts},
        }

    def extra_repr(self) -> str:
        return f"contexts = {' and '.join(self._contexts)}"

    @property
    def _contexts(self) -> dict[str, HierarchicalAttention]:
        """The attention to earlier sentences after the encoder, before the output layer, or both."""
        contexts = {"encoder": self.encoder_context, "decoder": self.decoder_context}
        return {side: context for side, context in contexts.items() if context is not None}

    @property
    def source_embedding(self) -> nn.Embedding:  # type: ignore[override]
        return self.sentence.source_embedding

    @property
    def output(self) -> nn.Linear:  # type: ignore[override]
        return self.sentence.output

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        of_document = {
            f"{side}_{level}": [getattr(context, level).attention]
            for level in ("words", "sentences")
            for side, context in self._contexts.items()
        }
        return {**self.sentence.sites, **of_document}

    @property
    def sentence_sites(self) -> Mapping[str, Sequence[Attention]]:
        return self.sentence.sites

    def encode_embedded(
        self,
        embedded: Embedded,
        source_mask: SourceMask,
        watch: Watch | None = None,
        context: ReadableContext | None = None,
    ) -> Memory:
        annotations, first = self.annotate(embedded, source_mask, watch)
        if context is None:
            return Memory(self.remember(annotations, source_mask, first), ())
        earlier_annotations, earlier_first = self.annotate(self.source_embedding(context.source), context.source_mask)
        if self.encoder_context is not None:
            earlier = self.encoder_context.project(earlier_annotations, context.source_mask, context.rows)
            annotations = self.encoder_context(annotations, earlier, *_watches(watch, "encoder"))
        memory = self.remember(annotations, source_mask, first)
        if self.decoder_context is None:
            return Memory(memory, ())
        earlier_memory = self.remember(earlier_annotations, context.source_mask, earlier_first)
        features = self.sentence.decode(context.target_input, earlier_memory)
        return Memory(memory, self.decoder_context.project(features, context.target_mask, context.rows))

    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, Any]:
        return self.sentence.annotate(embedded, source_mask, watch)

    def remember(self, annotations: Annotations, source_mask: SourceMask, first: Any) -> Any:
        return self.sentence.remember(annotations, source_mask, first)

    def decode(
        self, target_input: Target, memory: Memory, watch: Watch | None = None
    ) -> Float[Tensor, "batch target width"]:
        return self._in_context(self.sentence.decode(target_input, memory.sentence, watch), memory, watch)

    def start(self, memory: Memory, beams: int) -> Any:
        return self.sentence.start(memory.sentence, beams)

    def advance_features(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Memory, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams width"], Any]:
        features, state = self.sentence.advance_features(tokens, state, memory.sentence, watch)
        return self._in_context(features, memory, watch), state

    def _in_context(
        self, features: Float[Tensor, "batch queries width"], memory: Memory, watch: Watch | None
    ) -> Float[Tensor, "batch queries width"]:
        if self.decoder_context is None or not isinstance(memory.earlier, EarlierSentences):
            return features
        in_context: Tensor = self.decoder_context(features, memory.earlier, *_watches(watch, "decoder"))
        return in_context


def _watches(watch: Watch | None, side: str) -> tuple[Any, Any]:
    """The watch for the words and the watch for the sentences; both are None if `watch` is None."""
    words, sentences = (watch and partial(watch, f"{side}_{level}", 0) for level in ("words", "sentences"))
    return words, sentences
