"""Write what a run attends to in every sentence of a file: each site, layer and head as data, and pictures, word
alignments, diagnostics and a page to look at.

python -m nmt.export_attention run_dir=PATH input=in.en out=maps                    of the run's own translations
python -m nmt.export_attention run_dir=PATH input=in.en target=in.vi out=maps       of given translations
python -m nmt.export_attention run_dir=PATH input=in.en out=maps search.n_best=3    of each of the best three
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("export_attention", __doc__, "nmt.commands.export_attention:export_attention")
