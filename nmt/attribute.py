"""Measure how much each source piece matters for each target piece, for comparison with attention.

python -m nmt.attribute run_dir=PATH input=in.en out=why                      for the run's own translations
python -m nmt.attribute run_dir=PATH input=in.en target=in.vi out=why         for given translations
python -m nmt.attribute run_dir=PATH input=in.en out=why method=occlusion     by zeroing one source piece at a time
python -m nmt.attribute run_dir=PATH input=in.en out=why contrast=con         why each piece rather than "con"
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("attribute", __doc__, "nmt.commands.attribute:attribute")
