"""Seeds for random choices that depend on a key alone, such as 'seed/epoch/sentence', and not on earlier choices."""

import hashlib


def keyed_seed(key: str, size: int = 8) -> int:
    """A seed of `size` bytes. Python's own hash of a text would differ between processes."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=size).digest(), "big")
