"""Translate standard input to standard output, a line for a line.

python -m nmt.translate run_dir=PATH < in.en > out.vi
echo "Good morning." | python -m nmt.translate run_dir=PATH search.beam_size=10
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("translate", __doc__, "nmt.commands.translate:translate")
