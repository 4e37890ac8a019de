"""Downloads corpora, verifies them and logs their licenses.

  python -m nmt.download iwslt15                       to data/iwslt15, where data=iwslt15 reads it
  python -m nmt.download iwslt15 envi out=/data        several corpora, to another folder
  python -m nmt.download iwslt15 from=/copies/iwslt    copies the files from a folder that has them
  python -m nmt.download hub:OWNER/SET                 a parallel dataset from the Hugging Face Hub, for data=hub
  python -m nmt.download https://host/corpus.zip       any file or archive; an archive is extracted beside it

Prints the paths of the files. Run the same command again to continue an interrupted download; complete files are kept.
Corpora known by name: envi, iwslt15; data/README.md describes them.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("download", __doc__, "nmt.commands.download:download", words="what")
