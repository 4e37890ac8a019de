"""The errors for what cannot be exported, and for exports that cannot be read."""

from nmt.errors import Mistake


class Unsupported(Mistake):
    """A format cannot hold this model."""


class DamagedExport(Mistake):
    """Files of an export are missing or unreadable."""


class UnreadableExport(RuntimeError):  # noqa: N818
    """An export that was just written cannot be opened, which is a bug."""
