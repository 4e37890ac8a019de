"""Export a finished run to another program's format, and check that the export gives the same results.

python -m nmt.export run_dir=PATH format=ctranslate2 out=DIR quantization=int8
python -m nmt.export run_dir=PATH format=hugging_face out=DIR
python -m nmt.export run_dir=PATH format=onnx out=DIR
python -m nmt.export run_dir=PATH format=argos out=DIR
python -m nmt.export run_dir=PATH format=page out=lab.html quantization=int8
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("export", __doc__, "nmt.commands.export:export")
