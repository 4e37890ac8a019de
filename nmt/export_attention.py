"""Export what a run attends to in every sentence of a file: the attention weights of each site, layer and head, as
well as pictures, word alignments, diagnostics and an interactive page.

  python -m nmt.export_attention run_dir=PATH input=in.en out=maps                    for the run's own translations
  python -m nmt.export_attention run_dir=PATH input=in.en target=in.vi out=maps       for given translations
  python -m nmt.export_attention run_dir=PATH input=in.en out=maps search.n_best=3    for the three best translations
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("export_attention", __doc__, "nmt.commands.export_attention:export_attention")
