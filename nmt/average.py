"""Average the weights of a finished run's checkpoints into a new run.

  python -m nmt.average run_dir=PATH                           the best ones that it kept (checkpoints.keep)
  python -m nmt.average run_dir=PATH checkpoints=recent number=5
                                                               the last 5, of a training with checkpoints.recent=5

Writes PATH_average, or out=FOLDER, a run directory like any other, and prints it with its scores on the test split.
A moving average of the weights during training is another way: python -m nmt.train ema_decay=0.999
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("average", __doc__, "nmt.commands.average:average")
