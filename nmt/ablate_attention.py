"""Measure how much worse a finished run gets when an attention head is turned off, made uniform, shuffled or frozen.

python -m nmt.ablate_attention run_dir=PATH                          every head, on the validation split
python -m nmt.ablate_attention run_dir=PATH site=cross 'ways=[off]'  the heads of one site, turned off
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("ablate_attention", __doc__, "nmt.commands.ablate_attention:ablate_attention")
