"""Translate standard input to standard output, line by line, or files to a folder.

python -m nmt.translate run_dir=PATH < in.en > out.vi
echo "Good morning." | python -m nmt.translate run_dir=PATH search.beam_size=10
python -m nmt.translate 'run_dir=[A,B]' < in.en                     an ensemble of two runs
python -m nmt.translate run_dir=PATH input=mono.en.gz output=DIR    in parts; the same command continues after a kill
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("translate", __doc__, "nmt.commands.translate:translate")
