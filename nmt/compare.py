"""Compare finished runs, or translations of any systems, with paired significance tests.

  python -m nmt.compare 'run_dirs=[A,B,C]'                     on the test split; each run is tested against A
  python -m nmt.compare 'run_dirs=[A,B]' split=valid out=runs/table
  python -m nmt.compare 'outputs=[a.vi,b.vi]' reference=test.vi
                                                               translations of other systems

Prints a table of the settings in which the runs differ, their scores, speed and memory. Writes it to `out` as
comparison.md, .csv, .tex and .json, with a chart of the BLEU scores in comparison.png.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("compare", __doc__, "nmt.commands.compare:compare")
