"""Every experiment composes, can be built, says where it comes from, and leaves the command line the last word."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt.cli.compose import configuration
from nmt.config.nodes import CONFIGS, make
from nmt.config.schema import RunSettings, validated
from nmt.training.origin import stored_keys
from nmt.training.translation import Translation

# Published systems and recipes; the other two are defaults.
FILES = sorted(file for file in (CONFIGS / "experiment").glob("*.yaml") if file.stem not in ("none", "sample"))


def composed(file: Path, *more: str) -> dict[str, Any]:
    # The folder's name needs the running Hydra.
    return configuration("train", [f"experiment={file.stem}", "run_dir=unused", *more])


def test_the_six_are_there() -> None:
    names = "bahdanau2015 joey_xnmt_iwslt15 luong2015_local_p tears_iwslt15 tfnmt_iwslt15 transformer_base_iwslt15"
    assert {file.stem for file in FILES} >= set(names.split())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_settings_arrive_and_can_be_built(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    config = composed(file)
    for section, values in yaml.safe_load(text).items():
        if section in ("defaults", "run_dir"):
            continue
        for key, value in values.items() if isinstance(values, dict) else [(None, values)]:
            found = config[section] if key is None else config[section][key]
            # A part's own settings are among those of its other keys.
            assert found == value or value.items() <= found.items(), f"{section}.{key}"
    written = yaml.safe_load(text)
    # Where a default of this program differs from the source it is a deviation that nobody sees.
    assert "label_smoothing" in written
    assert "gradient_clip_val" in written["trainer"]
    assert "length_penalty" in written["search"]
    assert "adam" not in text.split("override /optimizer: ")[1].split("\n")[0] or "betas" in written["optimizer"]
    Translation().check_buildable(validated(RunSettings, stored_keys(config)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_head_has_command_source_and_expectation(file: Path) -> None:
    head = file.read_text(encoding="utf-8").split("defaults:")[0]
    assert f"# command   python -m nmt.train experiment={file.stem}\n" in head
    assert re.search(r"^# source    \S", head, re.MULTILINE)
    assert re.search(r"^# expected  (\d+\.\d+ on \S+ \(published|not published for this corpus)", head, re.MULTILINE)
    assert re.search(r"^# differs   \S", head, re.MULTILINE)


def test_bahdanaus_optimizer_takes_the_papers_steps_from_the_gradients_of_a_loss_per_token() -> None:
    ours = composed(CONFIGS / "experiment" / "bahdanau2015.yaml")["optimizer"]
    papers = configuration("train", ["optimizer=adadelta", "run_dir=unused"])["optimizer"]
    exact = papers["eps"] / 26**2
    assert f"{ours['eps']:.2e}" == f"{exact:.2e}"  # the file gives three digits
    weights = []
    for optimizer, pieces in ((papers, 1), ({**ours, "eps": exact}, 26)):
        weight, draw = torch.zeros(7, dtype=torch.float64, requires_grad=True), torch.Generator().manual_seed(2)
        updated = make(optimizer)([weight])
        for _ in range(100):
            weight.grad = 1e-4 * torch.randn(7, generator=draw, dtype=torch.float64) / pieces
            updated.step()
        weights.append(weight.detach())
    assert weights[0].any()
    # A hundred steps of ten operations in float64, whose sum is at least a thousandth of their lengths.
    torch.testing.assert_close(*weights, rtol=100 * 10 * 2**-52 * 1000, atol=0)


def test_the_command_line_has_the_last_word() -> None:
    file = CONFIGS / "experiment" / "luong2015_local_p.yaml"
    config = composed(file, "scorer=dot", "window=global", "model.num_layers=1", "trainer.max_steps=7")
    assert config["scorer"]["_target_"] == "nmt.attention.scorers.Dot"
    assert config["window"]["_target_"] == "nmt.attention.windows.Global"
    assert (config["model"]["num_layers"], config["trainer"]["max_steps"]) == (1, 7)
