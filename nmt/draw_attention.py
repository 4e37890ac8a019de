"""Draw attention maps that nmt.export_attention wrote. The run itself is not needed.

python -m nmt.draw_attention maps=maps 'lines=[3]' 'formats=[pdf]' words=true width=3.3  a figure for a paper
python -m nmt.draw_attention maps=maps 'lines=[3]' 'formats=[png]' site=all grid=true    all heads of each site
python -m nmt.draw_attention maps=maps 'formats=[png]' layer=1 head=all                  each head of a layer
python -m nmt.draw_attention 'maps=[maps_a,maps_b]' 'formats=[png]' out=both             two runs in one picture
python -m nmt.draw_attention 'maps=[maps_a,maps_b]' 'formats=[viewer]' out=both          two runs on one page
python -m nmt.draw_attention maps=runs/demo/probes 'formats=[gif]' out=film              how attention changed
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("draw_attention", __doc__, "nmt.commands.draw_attention:draw_attention")
