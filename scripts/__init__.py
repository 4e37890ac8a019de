"""Benchmarks, studies, and the grammar of the sample corpus; run one as python -m scripts.FOLDER.NAME."""
