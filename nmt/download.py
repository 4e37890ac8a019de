"""Corpora from the web, verified, with their licences.

  python -m nmt.download iwslt15                       to data/iwslt15, where data=iwslt15 reads them
  python -m nmt.download iwslt15 envi out=/data        several, elsewhere
  python -m nmt.download iwslt15 from=/copies/iwslt    from a folder that has the files
  python -m nmt.download hub:OWNER/SET                 a parallel set of the Hugging Face hub, for data=hub
  python -m nmt.download https://host/corpus.zip       any file or archive; an archive is taken out beside it

What broke off goes on with the same command, what is there is left alone. Prints the files that are there now.
Corpora known by name: envi, iwslt15; data/README.md says what they are.
"""

from nmt.cli.compose import command

if __name__ == "__main__":
    command("download", __doc__, "nmt.commands.download:download", words="what")
