"""A look at the corpora of a training before it, and what can be prepared for it.

  python -m nmt.prepare data=envi                            what nmt.train data=envi would train on
  python -m nmt.prepare data=files data.train=[a,b] data.valid=c

Takes what nmt.train takes, and trains nothing. Prints, for each corpus, how many pairs have what is usually wrong with
corpora, the first lines of each kind, and what the filters leave. The tokenizer and the tokenised corpus are kept in
cache_dir, where nmt.train with the same options finds them. No corpus is changed.
"""

from nmt.cli.compose import command

if __name__ == "__main__":
    command("train", __doc__, "nmt.commands.prepare:prepare")
