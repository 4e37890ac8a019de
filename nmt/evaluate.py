"""Score a finished run: BLEU and chrF with signatures and confidence intervals, and the alignment error rate.

  python -m nmt.evaluate run_dir=PATH                          on its test split
  python -m nmt.evaluate run_dir=PATH split=valid search.beam_size=1
  python -m nmt.evaluate run_dir=PATH source=my.en reference=my.vi alignment=my.en-vi.align

The alignment error rate needs gold word alignments; for a split, they are read from PREFIX.en-vi.align.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("evaluate", __doc__, "nmt.commands.evaluate:evaluate")
