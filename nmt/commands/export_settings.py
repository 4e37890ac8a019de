"""The settings of nmt.export."""

from typing import Annotated, Literal

from pydantic import model_validator as check

from nmt.config.fields import Text, expects
from nmt.config.shared_settings import OwnFiles, check_named_once
from nmt.errors import Mistake


class ExportSettings(OwnFiles):
    """The runs to export, the format, and the folder to which the export is written."""

    run_dir: Text | None
    run_dirs: Annotated[list[Text], expects("a list, as in 'run_dirs=[A,B]'")]
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

    @check(mode="after")
    def check_runs(self) -> "ExportSettings":
        if self.run_dir is None and not self.run_dirs:
            raise Mistake("run_dir is missing. Add run_dir=PATH to the command, or 'run_dirs=[A,B]' with format=page.")
        if self.run_dir is not None and self.run_dirs:
            raise Mistake("run_dir and run_dirs are both set: write all runs into run_dirs, and leave out run_dir.")
        if self.run_dirs and self.format != "page":
            raise Mistake(f"run_dirs is only for format=page; with format={self.format}, export each run by itself.")
        check_named_once(self.run_dirs)
        return self

    @property
    def runs(self) -> list[str]:
        """The run directories, at least one."""
        return self.run_dirs if self.run_dir is None else [self.run_dir]
