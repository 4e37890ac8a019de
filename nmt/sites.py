"""The one table of attention sites: where in a model a query attends to keys, and what both are."""

from dataclasses import dataclass
from typing import Literal

Positions = Literal["source", "target"]
Attended = Literal["source", "target", "earlier source", "earlier target", "earlier sentences"]


@dataclass(frozen=True)
class Site:
    """An attention site, whose map has a row for each query and a column for each key."""

    name: str
    rows: Positions
    """The side whose positions are the queries."""
    columns: Attended
    """What the keys are: pieces of one side, pieces of earlier sentences of the document, or these sentences."""
    causal: bool = False
    """Whether a row sees no column after its own position. (An LSTMN's rows see none at it, on either side.)"""
    needs: str = ""
    """The option that gives a model this site; '' for cross attention, which every translation model has."""

    @property
    def title(self) -> str:
        """What a picture of its maps is called."""
        stack, _, level = self.name.partition("_")  # 'encoder' or 'decoder', and 'self', 'words' or 'sentences'
        if self.of_one_side:
            return f"Self-attention of the {stack}"
        return f"Attention of the {stack} to earlier {level}" if self.of_document else "Cross attention"

    @property
    def of_one_side(self) -> bool:
        """Whether rows and columns are the same positions, as in self-attention."""
        return self.rows == self.columns

    @property
    def of_document(self) -> bool:
        """Whether the queries attend to earlier sentences of the document."""
        return self.columns.startswith("earlier ")


SITES: dict[str, Site] = {
    site.name: site
    for site in (
        Site("encoder_self", "source", "source", needs="encoder@model=lstmn"),
        Site("decoder_self", "target", "target", causal=True, needs="decoder@model=lstmn"),
        Site("cross", "target", "source"),
        Site("encoder_words", "source", "earlier source", needs="context=hierarchical"),
        Site("decoder_words", "target", "earlier target", needs="context=hierarchical"),
        Site("encoder_sentences", "source", "earlier sentences", needs="context=hierarchical"),
        Site("decoder_sentences", "target", "earlier sentences", needs="context=hierarchical"),
    )
}
"""Every site by name: sentence sites, then document sites."""

SENTENCE_SITES = tuple(name for name, site in SITES.items() if not site.of_document)
DOCUMENT_SITES = tuple(name for name, site in SITES.items() if site.of_document)
