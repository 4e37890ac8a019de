"""Writes to TensorBoard the attention of the probe sentences, as images, and translations, as text."""

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from lightning import Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from nmt.maps.attention_map import SentenceMaps, selected
from nmt.maps.words import labeled, text_of

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# Enough for a screen; a picture for print takes three times as long.
_DPI = 100


def show_maps(trainer: Trainer, sentences: Sequence[SentenceMaps]) -> None:
    """Adds a picture of each sentence's cross attention, averaged over layers and heads, between words."""
    boards = _boards(trainer)
    if not boards:
        return
    from nmt.maps.plots import Look, heat_map  # matplotlib takes half a second to load

    for sentence in sentences:
        shown = labeled(sentence.site("cross"), words=True)
        look = Look(title=text_of(sentence.source_pieces), dpi=_DPI)
        picture = np.asarray(heat_map(selected(shown.weights, None, None), shown.columns, shown.rows, look).pixels())
        for board in boards:
            board.add_image(f"cross attention/line {sentence.line}", picture, trainer.global_step, dataformats="HWC")


def show_translations(trainer: Trainer, translations: Sequence[tuple[str, str, str]]) -> None:
    """Adds a table of some translations: source, reference and hypothesis."""
    table = ["| source | reference | hypothesis |", "| --- | --- | --- |"]
    for texts in translations:
        # TensorBoard reads Markdown, in which a bar would end the cell.
        cells = (html.escape(text, quote=False).replace("|", "&#124;") for text in texts)
        table.append(f"| {' | '.join(cells)} |")
    for board in _boards(trainer):
        board.add_text("translations", "\n".join(table), trainer.global_step)


def _boards(trainer: Trainer) -> list["SummaryWriter"]:
    return [logger.experiment for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
