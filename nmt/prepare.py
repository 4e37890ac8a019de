"""Report on corpora before training, or split a corpus into training, validation and test pairs.

  python -m nmt.prepare data=envi                   reports on the corpora of 'nmt.train data=envi'
  python -m nmt.prepare split.corpus=my/all         splits my/all.en and my/all.vi into files in my/all_split
  python -m nmt.prepare split.corpus=my/all split.valid=0.05 split.test=500 split.out=my/parts seed=2

The report counts common defects of each corpus, lists the first lines that have them, and says what the filters drop.
It also fills cache_dir with the tokenizer and the tokenized corpus, which nmt.train uses if the options are the same.

No line ends up in two parts: validation and test take only pairs whose source and target occur in no different pair.
Duplicates of these pairs are left out. Word alignments (PREFIX.en-vi.align) are split too. No input file is changed.

A corpus with a PREFIX.doc is split by documents. Training pairs are left out if their source or target is also in a
validation or test document. Only validation and test may share single lines.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("prepare", __doc__, "nmt.commands.prepare:prepare")
