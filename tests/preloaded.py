"""Imported by the server of forked.py: the configuration files of the commands that tests start most are composed."""

from nmt.cli.compose import configuration

configuration("train", ["experiment=none", "data=files", "model=transformer", "run_dir=unused"])
configuration("translate", ["run_dir=unused"])
