"""The synchronous English-Vietnamese grammar that derives the embedded sample corpus (CC0)."""
