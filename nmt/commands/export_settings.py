"""The settings of nmt.export."""

from typing import Literal

from pydantic import model_validator as check

from nmt.config.fields import Text
from nmt.config.shared_settings import OwnFiles
from nmt.errors import Mistake


class ExportSettings(OwnFiles):
    """The format of an export, and the folder to which it is written."""

    run_dir: Text
    format: Literal["ctranslate2", "hugging_face", "onnx", "argos", "run", "page"]
    out: Text
    overwrite: bool
    quantization: Literal["float32", "int8", "int16", "float16", "bfloat16"]

    @check(mode="after")
    def check_reference(self) -> "ExportSettings":
        if self.reference is not None and len(self.reference) > 1:
            raise Mistake(
                f"reference names {len(self.reference)} files, but an export is checked against only one: name "
                "one file."
            )
        return self
