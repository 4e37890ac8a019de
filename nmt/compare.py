"""Compare finished runs, or translations of any systems, with paired significance.

  python -m nmt.compare run_dirs=[A,B,C]                       on the test split, p against A
  python -m nmt.compare run_dirs=[A,B] split=valid out=runs/table
  python -m nmt.compare outputs=[a.vi,b.vi] reference=test.vi  other people's translations

Prints a table of what differs between the configurations, of scores, speed and memory; writes it to `out` as
comparison.md, .csv, .tex, .json and .png.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("compare", __doc__, "nmt.commands.compare:compare")
