"""The error of an export that its own program cannot read."""


class DamagedExport(ValueError):  # noqa: N818
    """Files of an export are missing or unreadable."""
