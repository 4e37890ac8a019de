"""Imported by the server of forked.py: what the commands that tests start most import and compose."""

import importlib
import os

from disk import not_waiting

from nmt.cli.compose import configuration

for name in (
    "nmt.cli.command",
    "nmt.commands.pretrain",
    "nmt.commands.sweep_report",
    "nmt.commands.train",
    "nmt.commands.translate",
    "sacrebleu.significance",
    "torch.utils.tensorboard",
):
    importlib.import_module(name)
os.fsync = not_waiting
configuration("train", ["experiment=none", "data=files", "model=transformer", "run_dir=unused"])
configuration("pretrain", [])
configuration("translate", ["run_dir=unused"])
