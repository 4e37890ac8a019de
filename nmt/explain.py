"""Explain the attention of a configuration: formulas with their sources, queries, shapes, parameters and memory.

  python -m nmt.explain                                        the default model
  python -m nmt.explain model=luong scorer=general window=local_p
  python -m nmt.explain model=transformer scorer@cross=additive source_length=7 target_length=5
  python -m nmt.explain run_dir=RUN                            the model of a finished run, with its vocabulary

This command trains nothing and reads no corpus.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("explain", __doc__, "nmt.commands.explain:explain")
