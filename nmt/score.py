"""How probable a finished run finds given translations: forced scoring.

  python -m nmt.score run_dir=PATH source=my.en target=my.vi > log_probs
  python -m nmt.score run_dir=[A,B] source=my.en target=my.vi  the runs as an ensemble

Prints the natural logarithm of P(target | source) of each pair of lines, the end of the sentence included. The
perplexities of all of them, per piece, per word and per character, go to standard error.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("score", __doc__, "nmt.commands.score:score")
