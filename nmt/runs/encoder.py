"""Loads a pretrained encoder from its run directory."""

from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError

from nmt.config.messages import stored_invalid
from nmt.config.nodes import Node, make
from nmt.config.schema import EncoderSettings, validated
from nmt.config.trusted import FOR_LOADING, check_nodes
from nmt.errors import Mistake
from nmt.models import MaskedTransformer, VocabularySizes
from nmt.models.embeddings import with_plain_weights
from nmt.models.no_initial_weights import NoInitialWeights
from nmt.runs.directory import EncoderDirectory
from nmt.runs.load import choose_device
from nmt.runs.weights import enough_memory, header_matches, load_weights
from nmt.text import TokenizerPair


class LoadedEncoder(NamedTuple):
    """A finished run of nmt.pretrain, loaded into memory; its source and target tokenizers are the same."""

    directory: EncoderDirectory
    settings: EncoderSettings
    tokenizers: TokenizerPair
    model: MaskedTransformer
    device: torch.device


def build_encoder(model: Node, tokenizers: TokenizerPair) -> MaskedTransformer:
    """The encoder with fresh weights, for a vocabulary of the tokenizers' size."""
    sizes = VocabularySizes(tokenizers.source.size, tokenizers.target.size, tokenizers.joint)
    encoder: MaskedTransformer = make(model, MaskedTransformer)(vocabulary=sizes)
    return encoder


def load_encoder(path: Path, device: str) -> LoadedEncoder:
    """The pretrained encoder in a folder.

    Raises Mistake if the folder holds no finished encoder, if its files do not belong together,
    or if the device cannot be used.
    """
    torch_device = choose_device(device)
    directory = EncoderDirectory(path)
    directory.require_finished()
    directory.check_links()
    config = directory.config()
    check_nodes(config, path / "config.yaml", FOR_LOADING)
    try:
        settings = validated(EncoderSettings, config)
    except Mistake as error:
        raise Mistake(f"{path / 'config.yaml'} cannot be used: {stored_invalid(error)}") from error
    tokenizers = directory.tokenizers(None, directory.metrics())
    damaged = Mistake(
        f"{directory.weights} does not hold the weights of the encoder that {path / 'config.yaml'} describes, with "
        f"a vocabulary of {tokenizers.source.size} pieces: copy the run's own files back, or pretrain again."
    )
    try:
        with torch.device("meta"), NoInitialWeights():
            trial = build_encoder(settings.model, tokenizers)
    except Mistake as error:
        raise damaged from error
    # Before anything is allocated: a model of any size can be described in one line.
    if not header_matches(trial, directory.weights):
        raise damaged
    with enough_memory(directory.weights), NoInitialWeights():
        model = build_encoder(settings.model, tokenizers)
    try:
        load_weights(model, directory.weights, settings.trainer.precision)
    except (RuntimeError, SafetensorError) as error:
        raise damaged from error
    with_plain_weights(model)
    return LoadedEncoder(directory, settings, tokenizers, model.eval().to(torch_device), torch_device)
