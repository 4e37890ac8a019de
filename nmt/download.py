"""Download corpora, verify them and log their licenses.

  python -m nmt.download iwslt15                       into data/iwslt15, where data=iwslt15 looks for it
  python -m nmt.download iwslt15 envi out=/data        several corpora, into another folder
  python -m nmt.download iwslt15 from=/copies/iwslt    copies the files from a local folder instead
  python -m nmt.download hub:OWNER/SET                 a parallel dataset from the Hugging Face Hub, for data=hub
  python -m nmt.download https://host/corpus.zip       any file; an archive is also extracted

Prints the paths of the files. Run the same command again to resume the interrupted download of a known corpus;
complete files are kept. Corpora known by name: envi, iwslt15; data/README.md describes them.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("download", __doc__, "nmt.commands.download:download", words="what")
