"""Draw what a run attends to: for every sentence a picture of the cross attention, and the weights of each site,
layer and head as JSON.

python -m nmt.export_attention run_dir=PATH input=in.en out=maps                    for the run's own translations
python -m nmt.export_attention run_dir=PATH input=in.en target=in.vi out=maps       for given translations
"""

from nmt.run.compose import command

if __name__ == "__main__":
    command("export_attention", __doc__, "nmt.run.export_attention:export_attention")
