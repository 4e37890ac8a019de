"""Train a model, score it and write a run directory.

  python -m nmt.train                                          the embedded sample corpus, a Transformer
  python -m nmt.train model=luong scorer=general seed=2        another model, another score
  python -m nmt.train model=transformer scorer@cross=additive run_dir=runs/cross
                                                               another score in one attention site
  python -m nmt.train data=files 'data.train=[my/train]' data.valid=my/valid data.test=my/test direction=vi-en
  python -m nmt.train trainer.max_epochs=20 trainer.max_time=00:01:00:00 trainer.precision=bf16-mixed
  python -m nmt.train resume=true                              go on where the same command was stopped
  python -m nmt.train -m scorer=additive,dot seed=1,2          a sweep

Prints the run directory and the score; progress goes to standard error.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("train", __doc__, "nmt.commands.train:train", after_sweep="nmt.commands.sweep_report:sweep_report")
