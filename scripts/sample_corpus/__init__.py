"""The synchronous English-Vietnamese grammar that generates the embedded sample corpus (CC0)."""
