"""The errors for what cannot be exported, and for exports that cannot be read."""

from nmt.errors import Mistake


class Unsupported(Mistake):
    """A format cannot hold this model.

    `limit` says why without the run or a remedy, as in "supports only Transformers": it holds for equal runs too.
    """

    def __init__(self, message: str, limit: str = "does not support this model") -> None:
        super().__init__(message)
        self.limit = limit


class DamagedExport(Mistake):
    """Files of an export are missing or unreadable."""


class UnreadableExport(RuntimeError):  # noqa: N818
    """An export that was just written cannot be opened, which is a bug."""
