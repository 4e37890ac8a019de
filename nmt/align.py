"""Measure how well a run's cross attention agrees with gold word alignments, for every layer and head.

python -m nmt.align run_dir=PATH                             on the test split
python -m nmt.align run_dir=PATH method=occlusion            an attribution (nmt.attribute) instead of attention
python -m nmt.align run_dir=PATH source=my.en reference=my.vi alignment=my.en-vi.align
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("align", __doc__, "nmt.commands.align:align")
