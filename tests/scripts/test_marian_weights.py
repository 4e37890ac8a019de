"""A run's weights under Marian's names."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from nmt.runs.load import load_run
from nmt.text import BOS
from scripts.bench.peers.marian_weights import DECODER, ENCODER, main


@pytest.fixture
def run(folder: Path) -> Path:
    return folder / "maps_transformer"


def test_every_weight_is_written_once(run: Path, tmp_path: Path) -> None:
    main([str(run), str(tmp_path / "marian")])
    found = dict(np.load(tmp_path / "marian" / "model.npz"))
    model = load_run(run, "cpu").model
    options = yaml.safe_load(found.pop("special:model.yml").tobytes().rstrip(b"\0"))
    size, dim = model.target_embedding.weight.shape
    assert (options["dim-emb"], options["dim-vocabs"], options["dec-depth"]) == (dim, [size] * 2, len(model.decoder))
    tables = [name for name in found if "Wemb" in name or "positionEmbedding" in name or "logit_out" in name]
    own = sum(weights.size for name, weights in found.items() if name not in tables)
    assert own == sum(weights.numel() for weights in model.parameters()) - size * dim
    embedding = model.target_embedding.weight.detach().numpy()
    assert np.array_equal(found["decoder_ff_logit_out_Wt"], embedding)
    begun, positions = (found[f"{side}->positionEmbedding->embeddings"] for side in (DECODER, ENCODER))
    assert np.array_equal(begun[1:], positions[1:])
    assert np.array_equal(begun[0], positions[0] + found["decoder_Wemb"][BOS])
    assert (tmp_path / "marian" / "vocab.spm").read_bytes() == (run / "tokenizer.model").read_bytes()


def test_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="supports Transformers only"):
        main([str(folder / "maps_luong"), str(tmp_path / "marian")])
