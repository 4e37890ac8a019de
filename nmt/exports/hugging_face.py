"""Exports a Transformer for the transformers library: model, tokenizer, search settings and model card."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from jaxtyping import Int
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig

from nmt.attention import MultiHeadAttention
from nmt.config.nodes import make
from nmt.data.batch import collate
from nmt.data.example import Example
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import Algorithm
from nmt.decoding.sampling import Sampling
from nmt.decoding.translator import batches_by_length
from nmt.errors import Mistake
from nmt.exports.damage import DamagedExport
from nmt.exports.folding import Projection, folded, require_marian_or_pegasus
from nmt.exports.model_card import model_card
from nmt.exports.positions import POSITIONS
from nmt.files import write_bytes, write_json
from nmt.models import Transformer
from nmt.runs.engine import longest_source, search_config
from nmt.runs.load import LoadedRun, system_errors
from nmt.text import BOS, EOS, PAD, UNK, Tokenizer, normalize

TYPICAL_LENGTH = 30
"""Length in pieces, including EOS, at which both length penalties change at the same rate; see `length_exponent`."""

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def write_hugging_face(run: LoadedRun, folder: Path) -> None:
    """Writes the model, tokenizer, search settings and model card to an existing folder.

    AutoModelForSeq2SeqLM and AutoTokenizer load them offline and without nmt. A post-norm model becomes a
    MarianMTModel, a pre-norm one a PegasusForConditionalGeneration. Raises Mistake for a model that neither of
    them supports.
    """
    model = require_marian_or_pegasus(run)
    exported = _fresh_model(run, model)
    weights = _weights(model)
    state = exported.state_dict()
    # The library computes its own position encodings: those of nmt.models.embeddings.sinusoids in a different order.
    lacking = sorted(name for name in state if name not in weights and not name.endswith("embed_positions.weight"))
    if lacking:
        raise Mistake(
            f"hugging_face does not support transformers {transformers.__version__}, whose model also has the weights "
            f"{', '.join(lacking)}; run pip install -c constraints.txt transformers first."
        )
    exported.load_state_dict({**state, **weights})
    exported.generation_config = GenerationConfig(**generation_settings(run))
    with system_errors(folder):
        exported.save_pretrained(folder)
    mode = (folder / "config.json").stat().st_mode
    (folder / "model.safetensors").chmod(mode)  # safetensors makes its files readable by the owner only
    _write_tokenizers(run, folder)
    write_bytes(
        folder / "README.md",
        model_card(run, {"library_name": "transformers"}, _USE, _differences(run)).encode(),
    )


def generation_settings(run: LoadedRun, search: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of GenerationConfig that come closest to the run's search with the overrides `search`.

    The library has one maximum length for all sentences, so this is the run's limit for the longest source that it
    translates without splitting. The library's lengths count BOS; ours do not.
    """
    configured: Algorithm = make(search_config(run.settings.search, search or {}))
    constraints = configured.constraints
    longest = int(longest_source(run.settings) * constraints.max_length_ratio + constraints.max_length_offset)
    longest = max(min(longest, constraints.max_length or longest, POSITIONS - 1), constraints.min_length)
    settings: dict[str, Any] = {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,  # at the maximum length
        "suppress_tokens": [PAD, UNK, BOS],
        "max_length": longest + 1,
        "min_length": constraints.min_length,
        "no_repeat_ngram_size": constraints.no_repeat_ngram,
    }
    if isinstance(configured, Sampling):
        drawn = {
            "do_sample": True,
            "temperature": configured.temperature,
            "top_k": configured.top_k,
            "top_p": configured.top_p,
        }
        return {**settings, **drawn}
    if isinstance(configured, BeamSearch) and configured.beam_size > 1:
        exponent = length_exponent(configured.length_penalty)
        # False: like BeamSearch, continue while an unfinished hypothesis is better than the finished ones.
        return {**settings, "num_beams": configured.beam_size, "length_penalty": exponent, "early_stopping": False}
    return settings


def length_exponent(alpha: float) -> float:
    """The library's `length_penalty` that comes closest to alpha.

    The library divides log P by |Y|^p, GNMT by ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14). The ratio of the
    two is stationary at |Y| = n for p = alpha n / (5 + n); n is TYPICAL_LENGTH.
    """
    return round(alpha * TYPICAL_LENGTH / (5 + TYPICAL_LENGTH), 4)


class HuggingFaceModel:
    """An exported folder, loaded and used as its README.md says.

    Raises DamagedExport, naming the folder, if transformers cannot load it.
    """

    max_source: int | None = POSITIONS
    max_target: int | None = POSITIONS

    def __init__(self, folder: Path) -> None:
        try:
            self.model = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).eval()
            self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            raise DamagedExport(f"transformers cannot load {folder} ({error}): export the run again.") from error

    @torch.inference_mode()
    def forced_log_probs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], batch_tokens: int = 4096
    ) -> list[list[float]]:
        """log p of each target piece and of EOS, in nats. The ids contain neither BOS nor EOS."""
        examples = [Example(index, *pair) for index, pair in enumerate(zip(sources, targets, strict=True))]
        log_probs: list[list[float]] = [[] for _ in examples]
        for indices in batches_by_length([max(example.lengths) for example in examples], batch_tokens):
            batch = collate([examples[index] for index in indices])
            logits = self.model(
                input_ids=batch.source,
                attention_mask=batch.source_mask.long(),
                decoder_input_ids=batch.target_input,
            ).logits
            chosen = logits.log_softmax(dim=-1).gather(2, batch.target_output.unsqueeze(2)).squeeze(2)
            for index, row in zip(indices, chosen.tolist(), strict=True):
                log_probs[index] = row[: len(targets[index]) + 1]
        return log_probs

    def translate(self, lines: Sequence[str], batch_tokens: int = 1024) -> list[str]:
        """Translates with `generate` and the stored settings; the translation of an empty line is empty."""
        texts = [normalize(line) for line in lines]
        lengths = [len(ids) if text else 0 for text, ids in zip(texts, self._ids(texts), strict=True)]
        translations = [""] * len(texts)
        for indices in batches_by_length(lengths, batch_tokens):
            inputs = self.tokenizer([texts[index] for index in indices], padding=True, return_tensors="pt")
            decoded = self.tokenizer.batch_decode(self.model.generate(**inputs), skip_special_tokens=True)
            for index, text in zip(indices, decoded, strict=True):
                translations[index] = normalize(text)
        return translations

    def search_with(self, settings: dict[str, Any]) -> None:
        """Sets the arguments of GenerationConfig for all later translations."""
        self.model.generation_config = GenerationConfig(**settings)

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return self.tokenizer(texts).input_ids if texts else []


def _fresh_model(run: LoadedRun, model: Transformer) -> Any:
    """The library's model with random weights."""
    source, target = run.tokenizers
    first: Any = model.encoder[0]
    heads, ffn_dim = first.attention.num_heads, first.feed_forward.inner.out_features
    settings: dict[str, Any] = {
        "vocab_size": source.size,
        "d_model": model.dim,
        "encoder_layers": len(model.encoder),
        "decoder_layers": len(model.decoder),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": ffn_dim,
        "decoder_ffn_dim": ffn_dim,
        "activation_function": "relu",
        "dropout": first.around_attention.dropout.p,
        "attention_dropout": first.attention.attention.dropout.p,
        "activation_dropout": first.feed_forward.dropout.p,
        "scale_embedding": True,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
    }
    if model.norm_first:
        return transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(**settings))
    settings["decoder_vocab_size"] = target.size
    settings["share_encoder_decoder_embeddings"] = run.tokenizers.joint
    return transformers.MarianMTModel(transformers.MarianConfig(**settings))


def _weights(model: Transformer) -> dict[str, Tensor]:
    """The weights under the names that Marian and Pegasus use.

    Their position encodings have all sines first, so the dimensions of the residual stream are put into the same order.
    """
    order = torch.cat([torch.arange(start, model.dim, 2) for start in (0, 1)])
    weights: dict[str, Tensor] = {}
    stacks: Any = {"encoder": model.encoder, "decoder": model.decoder}
    for side, layers in stacks.items():
        for index, layer in enumerate(layers):
            name = f"model.{side}.layers.{index}"
            weights |= _attention(f"{name}.self_attn", layer.attention, order)
            weights |= _norm(f"{name}.self_attn_layer_norm", layer.around_attention.norm, order)
            if side == "decoder":
                weights |= _attention(f"{name}.encoder_attn", layer.cross, order)
                weights |= _norm(f"{name}.encoder_attn_layer_norm", layer.around_cross.norm, order)
            inner, outer = layer.feed_forward.inner, layer.feed_forward.outer
            weights |= _reading(f"{name}.fc1", Projection(inner.weight, inner.bias), order)
            weights |= _writing(f"{name}.fc2", Projection(outer.weight, outer.bias), order)
            weights |= _norm(f"{name}.final_layer_norm", layer.around_ffn.norm, order)
    if model.norm_first:
        weights |= _norm("model.encoder.layer_norm", model.encoder_norm, order)
        weights |= _norm("model.decoder.layer_norm", model.decoder_norm, order)
    if model.source_embedding is model.target_embedding:
        weights["model.shared.weight"] = model.target_embedding.weight[:, order]
    weights["model.encoder.embed_tokens.weight"] = model.source_embedding.weight[:, order]
    weights["model.decoder.embed_tokens.weight"] = model.target_embedding.weight[:, order]
    weights["lm_head.weight"] = model.output.weight[:, order]
    weights["final_logits_bias"] = torch.zeros(1, len(model.output.weight))
    return {name: tensor.detach().float().cpu() for name, tensor in weights.items()}


def _attention(name: str, attention: MultiHeadAttention, order: Int[Tensor, " dim"]) -> dict[str, Tensor]:
    parts = folded(attention)
    return {
        **_reading(f"{name}.q_proj", parts.query, order),
        **_reading(f"{name}.k_proj", parts.key, order),
        **_reading(f"{name}.v_proj", parts.value, order),
        **_writing(f"{name}.out_proj", parts.output, order),
    }


def _reading(name: str, projection: Projection, order: Int[Tensor, " dim"]) -> dict[str, Tensor]:
    """A projection whose input is the residual stream."""
    return {f"{name}.weight": projection.weight[:, order], f"{name}.bias": projection.bias}


def _writing(name: str, projection: Projection, order: Int[Tensor, " dim"]) -> dict[str, Tensor]:
    """A projection whose output is added to the residual stream."""
    return {f"{name}.weight": projection.weight[order], f"{name}.bias": projection.bias[order]}


def _norm(name: str, norm: nn.Module, order: Int[Tensor, " dim"]) -> dict[str, Tensor]:
    return {f"{name}.{part}": tensor[order] for part, tensor in norm.named_parameters()}


def _write_tokenizers(run: LoadedRun, folder: Path) -> None:
    """Writes the files of a MarianTokenizer, which encodes a normalized line to the same ids as ours, plus EOS."""
    source, target = run.tokenizers
    write_bytes(folder / "source.spm", source.model)
    write_bytes(folder / "target.spm", target.model)
    write_json(folder / "vocab.json", _vocabulary(source))
    if not run.tokenizers.joint:
        write_json(folder / "target_vocab.json", _vocabulary(target))
    pad, unknown, begin, end = source.pieces([PAD, UNK, BOS, EOS])
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": not run.tokenizers.joint,
        "source_lang": run.direction.source,
        "target_lang": run.direction.target,
        "pad_token": pad,
        "unk_token": unknown,
        "bos_token": begin,
        "eos_token": end,
        "model_max_length": min(longest_source(run.settings), POSITIONS),
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # '</s>' in a text is ordinary text
    }
    write_json(folder / "tokenizer_config.json", settings)


def _vocabulary(tokenizer: Tokenizer) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(tokenizer.pieces(range(tokenizer.size)))}


_USE = """\
First run `pip install 'transformers>=5.24,<6' sentencepiece torch`.

```python
import unicodedata
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."  # this folder, or its name on the Hub
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
lines = [unicodedata.normalize("NFC", " ".join(line.split())) for line in ["One sentence."]]
translations = model.generate(**tokenizer(lines, padding=True, return_tensors="pt"))
print(tokenizer.batch_decode(translations, skip_special_tokens=True))
```
"""


def _differences(run: LoadedRun) -> list[str]:
    """The differences that a user of both needs to know, one per item."""
    search = make(run.settings.search)
    longest = generation_settings(run)["max_length"] - 1
    differences = [
        "Normalize the text to NFC with single plain spaces, as the code above does; `nmt.translate` does this itself, "
        "and drops invisible characters.",
        f"Each line must be one sentence of at most {min(longest_source(run.settings), POSITIONS)} pieces; "
        "`nmt.translate` splits longer lines. Skip empty lines: their translations are not empty.",
        f"A translation has at most {longest} pieces; in the run's search, the limit depends on the source length.",
        "Text such as `>>vi<<` at the beginning of a line is read as a language code.",
    ]
    if isinstance(search, BeamSearch) and search.beam_size > 1 and search.length_penalty:
        differences.append(
            f"`generate` divides log P by |Y|^{length_exponent(search.length_penalty)}, whereas the run's search "
            f"divides by ((5 + |Y|) / 6)^{search.length_penalty}, so the two sometimes rank hypotheses differently."
        )
    if isinstance(search, BeamSearch) and search.coverage_penalty:
        differences.append(
            f"The run's search has a coverage penalty of {search.coverage_penalty}; `generate` has none."
        )
    if isinstance(search, Sampling):
        differences.append("`generate` samples, as the run's search does, but with different random numbers.")
    if isinstance(search, Sampling) and search.top_k and search.top_p < 1:
        differences.append(
            f"`generate` measures top_p={search.top_p} on the {search.top_k} pieces that top_k leaves, and the run's "
            "search on all pieces, so `generate` may draw from fewer."
        )
    return differences
