"""Sentences with maps of known peaks, for the tests of the viewer."""

from pathlib import Path
from typing import Any

import numpy as np

from nmt.maps.attention_map import BOS, EOS, AttentionMap, LocalWindow, SentenceMaps
from nmt.pages.viewer import ViewedRun, write_viewer

SOURCE = ["▁These", "▁ca", "ts", "▁are", "▁asleep", "."]
TARGET = ["▁Những", "▁con", "▁mè", "o", "▁này", "▁đang", "▁ngủ", "."]
EVIL_SOURCE = [
    "▁</script>",
    "<script>window.alerted=1</script>",
    "▁<!--",
    "▁<img",
    "▁src=x",
    "▁onerror=alert(1)>",
    "▁\u2028&",
]
LAYERS, HEADS = 2, 3


def peak(layer: int, head: int, row: int, columns: int) -> int:
    return (row + layer + 2 * head) % columns


def peaky(rows: int, columns: int, layers: int = LAYERS, heads: int = HEADS, share: float = 0.7) -> np.ndarray:
    """Each row has `share` on its peak, 0.2 on the next column and the rest spread evenly."""
    weights = np.full((layers, heads, rows, columns), (0.8 - share) / columns, dtype=np.float32)
    for layer, head, row in np.ndindex(layers, heads, rows):
        column = peak(layer, head, row, columns)
        weights[layer, head, row, column] += share
        weights[layer, head, row, (column + 1) % columns] += 0.2
    return weights


def sentence(line: int, source: list[str] = SOURCE, rank: int = 1, **how: Any) -> SentenceMaps:
    columns, inputs, outputs = [*source, EOS], [BOS, *TARGET], [*TARGET, EOS]
    n, m = len(outputs), len(columns)
    maps = [
        AttentionMap("encoder_self", peaky(m, m, **how), columns, columns, columns),
        AttentionMap("decoder_self", peaky(n, n, **how), inputs, outputs, inputs),
        AttentionMap("cross", peaky(n, m, **how), inputs, outputs, columns),
    ]
    return SentenceMaps(line, rank, source, TARGET, maps)


def cross(weights: np.ndarray, local: LocalWindow | None = None) -> SentenceMaps:
    """A sentence of numbered pieces with the given weights at `cross` alone."""
    source, target = ([f"▁{i}" for i in range(size - 1)] for size in reversed(weights.shape[2:]))
    item = AttentionMap("cross", weights, [BOS, *target], [*target, EOS], [*source, EOS], local)
    return SentenceMaps(1, 1, source, target, [item])


def written(path: Path, *sentences: SentenceMaps) -> str:
    write_viewer(path, [ViewedRun("a run", iter(sentences))])
    return path.read_text(encoding="utf-8")
