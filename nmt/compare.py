"""Compare finished runs, or translations from any systems, with paired significance tests.

  python -m nmt.compare 'run_dirs=[A,B,C]'                     on the test split; B and C are each tested against A
  python -m nmt.compare 'run_dirs=[A,B]' split=valid out=runs/table
  python -m nmt.compare 'outputs=[a.vi,b.vi]' reference=test.vi
                                                               translations from other systems
  python -m nmt.compare 'run_dirs=[A]' split=flores 'outputs=[opus.vi,nllb.vi]'
                                                               a run beside them; every system is tested against A

Prints a table with the settings in which the runs differ and the scores, speed and memory of each run. Writes the
table to `out` as comparison.md, .csv, .tex and .json, and a chart of the BLEU scores as comparison.png.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("compare", __doc__, "nmt.commands.compare:compare")
