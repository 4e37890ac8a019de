"""How well the word links that a run's attention shows agree with a human alignment: for every row, layer and head.

python -m nmt.align run_dir=PATH                                                       on the test split
python -m nmt.align run_dir=PATH source=my.en reference=my.vi alignment=my.en-vi.align
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("align", __doc__, "nmt.commands.align:align")
