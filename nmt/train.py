"""Train a model, score it on the test split and write a run directory.

  python -m nmt.train                                          a Transformer on the embedded sample corpus
  python -m nmt.train model=luong scorer=general seed=2        another model, scoring function and seed
  python -m nmt.train model=transformer scorer@cross=additive  another scoring function in the cross attention only
  python -m nmt.train data=files 'data.train=[my/train]' data.valid=my/valid data.test=my/test direction=vi-en
  python -m nmt.train trainer.max_epochs=20 trainer.max_time=4h trainer.precision=bf16-mixed run_dir=runs/mixed
  python -m nmt.train resume=true                              resume the run that the same command started
  python -m nmt.train -m scorer=additive,dot seed=1,2          a sweep: one run for each combination
  python -m nmt.train -m scorer=additive,dot sweep_dir=runs/a  the same command again resumes this sweep

Prints the run directory and the run's scores or, after a sweep, a comparison of its runs. Progress goes to standard
error.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command(
        "train",
        __doc__,
        "nmt.commands.train:train",
        after_sweep="nmt.commands.sweep_report:sweep_report",
        run_directory="nmt.runs.directory:RunDirectory",
    )
