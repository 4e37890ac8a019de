"""Average the weights of a finished run's checkpoints into a new run.

  python -m nmt.average run_dir=PATH                           the best checkpoints (see checkpoints.keep)
  python -m nmt.average run_dir=PATH checkpoints=recent number=5
                                                               the last 5 of a run trained with checkpoints.recent=5

Writes a new run directory (PATH_average unless out=FOLDER is given), and prints its path and its scores on the test
split.
To average during training instead: python -m nmt.train ema_decay=0.999
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("average", __doc__, "nmt.commands.average:average")
