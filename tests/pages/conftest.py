"""A server of the tiny runs."""

from served_runs import address, client, gallery, serve

__all__ = ["address", "client", "gallery", "serve"]
