"""The error for an export that cannot be read."""

from nmt.errors import Mistake


class DamagedExport(Mistake):
    """Files of an export are missing or unreadable."""
