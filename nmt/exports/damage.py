"""The error for an export that cannot be read."""


class DamagedExport(ValueError):  # noqa: N818
    """Files of an export are missing or unreadable."""
