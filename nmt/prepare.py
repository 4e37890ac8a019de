"""Report on corpora before training, or split a corpus into training, validation and test pairs.

  python -m nmt.prepare data=envi                   reports on the corpora that 'nmt.train data=envi' uses
  python -m nmt.prepare split.corpus=my/all         splits my/all.en and my/all.vi into files in my/all_split
  python -m nmt.prepare split.corpus=my/all split.valid=0.05 split.test=500 split.out=my/parts seed=2

The report counts common defects in each corpus, lists the first lines that have them, and says what the filters drop.
The command also stores the tokenizer and the tokenized corpus in cache_dir; nmt.train reuses them if it is run with the
same options.

No line ends up in two parts: a pair is chosen for validation or test only if neither its source nor its target occurs
in a different pair. Duplicates of these pairs are left out. Word alignments (PREFIX.en-vi.align) are split too. No
input file is changed.

A corpus with a PREFIX.doc file is split by document. Training pairs are left out if their source or target is also in
a validation or test document. The validation and test documents may still have individual lines in common.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("prepare", __doc__, "nmt.commands.prepare:prepare")
