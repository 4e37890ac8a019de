"""Measure how much each source piece matters for each target piece, beside what the model attends to.

python -m nmt.attribute run_dir=PATH input=in.en out=why                      for the run's own translations
python -m nmt.attribute run_dir=PATH input=in.en target=in.vi out=why         for given translations
python -m nmt.attribute run_dir=PATH input=in.en out=why method=occlusion     by leaving out each source piece
python -m nmt.attribute run_dir=PATH input=in.en out=why contrast=con         why each piece and not "con"
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("attribute", __doc__, "nmt.commands.attribute:attribute")
