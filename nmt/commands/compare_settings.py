"""The settings of nmt.compare."""

import os
from typing import Annotated

from pydantic import model_validator as check

from nmt.config.fields import Device, Keys, Text, TextOrTexts, expects
from nmt.errors import Mistake


class CompareSettings(Keys):
    run_dirs: Annotated[list[Text], expects("a list, as in 'run_dirs=[A,B]'")]
    split: Text
    outputs: Annotated[list[Text], expects("a list, as in 'outputs=[a.vi,b.vi]'")]
    reference: Annotated[TextOrTexts | None, expects("a file, a list of files such as [A,B], or null")]
    out: Text
    device: Device

    @check(mode="after")
    def check_systems(self) -> "CompareSettings":
        if not self.run_dirs and not self.outputs:
            raise Mistake(
                "Set 'run_dirs=[A,B]' to compare runs, 'outputs=[a.vi,b.vi]' and reference=FILE to compare files of "
                "translations, or 'run_dirs=[A]' and 'outputs=[b.vi]' to compare both on a split of the runs' data."
            )
        resolved = [os.path.realpath(path) for path in self.run_dirs]
        if twice := [path for path, target in zip(self.run_dirs, resolved, strict=True) if resolved.count(target) > 1]:
            raise Mistake(f"run_dirs names {twice[0]} twice; name each run once.")
        if self.run_dirs and self.reference not in (None, []):
            raise Mistake(
                "reference is for outputs alone; with run_dirs, the references are those of split: leave out reference="
            )
        if not self.run_dirs and self.reference in (None, []):
            raise Mistake("outputs need a reference: set reference=FILE, or 'reference=[A,B]' for several.")
        return self
