"""Pretrain a Transformer's encoder on text without translations, for nmt.train to start from.

  python -m nmt.pretrain 'data.train=[my/text.en,my/text.vi]' run_dir=runs/pretrained/both
  python -m nmt.train data=files 'data.train=[my/train]' data.valid=my/valid start_from=runs/pretrained/both
  python -m nmt.pretrain scorer=additive normalizer=sparsemax   a different attention in the encoder
  python -m nmt.pretrain resume=true                            resume the run that the same command started
  python -m nmt.export_attention run_dir=runs/pretrained/both input=my/text.en out=maps

Without data.train, the command reads both sides of the embedded sample corpus. It prints the run directory, and the
loss and accuracy on the validation text. Progress goes to standard error.
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("pretrain", __doc__, "nmt.commands.pretrain:pretrain", run_directory="nmt.runs.directory:EncoderDirectory")
