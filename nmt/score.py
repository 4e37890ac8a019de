"""Compute the probability that a finished run assigns to given translations (forced scoring).

  python -m nmt.score run_dir=PATH source=my.en target=my.vi > log_probs
  python -m nmt.score 'run_dir=[A,B]' source=my.en target=my.vi
                                                               with an ensemble of two runs

Prints ln P(target | source) for each pair of lines; the end of the sentence counts too. The perplexities of the whole
text per piece, per word and per character go to standard error.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("score", __doc__, "nmt.commands.score:score")
