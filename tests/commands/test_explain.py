"""What nmt.explain says about each model, and which sizes it refuses."""

import re
from pathlib import Path

import pytest
import torch
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.explain import explain, explanation, observed_sites
from nmt.config.nodes import CONFIGS, make
from nmt.errors import Mistake
from nmt.models import VocabularySizes
from nmt.runs.load import load_run


def model_of(*overrides: str):
    return make(configuration("explain", list(overrides))["model"])(vocabulary=VocabularySizes(19, 19, joint=True))


@pytest.mark.parametrize("model", sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml")))
def test_every_site_is_explained_with_its_parts(model: str) -> None:
    made = model_of(f"model={model}", "scorer=additive", "window=local_p", "normalizer=sparsemax")
    names = list(made.sites)
    text = explanation(made, source_length=7, target_length=5)
    assert re.findall(r"^(\w+): \d+ layers?, \d+ heads?", text, re.MULTILINE) == names
    assert text.count("v . tanh(W q + U k)") == len(names)
    assert " ".join(text.split()).count("local-p (Luong et al. 2015, equations 9 and 10)") == 1
    assert text.count("Martins") == len(names)
    for name in names:
        assert made.queries[name] in " ".join(text.split())


@pytest.mark.parametrize("context", ["hierarchical", "hierarchical_encoder", "hierarchical_decoder"])
def test_the_sites_of_a_document_model_are_explained_too(context: str, capsys: pytest.CaptureFixture[str]) -> None:
    explain(job_of("explain", configuration("explain", [f"context={context}"])))
    text = " ".join(capsys.readouterr().out.split())
    at = context.removeprefix("hierarchical").strip("_")
    sides = (at,) if at else ("encoder", "decoder")
    expected = [f"{side}_{level}" for level in ("words", "sentences") for side in sides]
    assert re.findall(r"(\w+): \d+ layers?, \d+ heads?", text)[3:] == expected
    assert ("weights 4 x S x C x S" in text) == (at != "decoder")
    assert ("weights 4 x T x C x T" in text) == (at != "encoder")
    assert "keys and values 4 x C x" in text
    assert "C = 3 earlier sentences of these lengths: queries (3,4," in text


def test_the_example_has_the_right_shapes() -> None:
    luong = observed_sites(model_of("model=luong", "model.num_heads=2"), 7, 5)[0]
    assert luong.calls == 5
    assert luong.shapes == {"queries": (1, 2, 1, 64), "keys": (1, 2, 7, 64), "values": (1, 2, 7, 64)}
    sites = {site.name: site for site in observed_sites(model_of("model=transformer"), 7, 5)}
    assert {name: (site.calls, site.layers, site.shapes["keys"]) for name, site in sites.items()} == {
        "encoder_self": (1, 2, (1, 4, 7, 32)),
        "decoder_self": (1, 2, (1, 4, 5, 32)),
        "cross": (1, 2, (1, 4, 7, 32)),
    }


@pytest.mark.parametrize(
    ("scorer", "kept"), [("dot", "keys, which are also the values, 1 x S x 128"), ("general", "256")]
)
def test_memory_counts_keys_that_are_also_values_once(scorer: str, kept: str) -> None:
    text = explanation(model_of("model=luong", f"scorer={scorer}"), 7, 5)
    assert " ".join(text.split("memory ")[1].split("\n\n")[0].split()).endswith(kept)


def test_a_site_s_own_scorer_is_explained_at_its_site() -> None:
    text = explanation(model_of("model=transformer", "scorer@cross=general"), 7, 5)
    cross = text.split("\n\ncross:")[1].split("\n\n")[0]
    assert "q . W k" in cross
    assert "scorer.weight (4,32,32)" in cross
    assert "none of its own" in explanation(model_of("model=luong", "scorer=dot"), 7, 5)


@pytest.mark.parametrize(("key", "length"), [("source_length", 0), ("target_length", 100_001)])
def test_a_size_out_of_range_is_refused(key: str, length: int) -> None:
    with pytest.raises(Mistake, match=f"{key} is {length}; it must be a whole number from 1 to 100,000"):
        explain(job_of("explain", {**configuration("explain", []), key: length}))


def test_an_example_that_fills_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        torch.empty(1 << 62, dtype=torch.uint8)  # more than any machine has

    monkeypatch.setattr("nmt.commands.explain.observed_sites", full)
    with pytest.raises(Mistake, match="An example of 100,000 source and 5 target pieces does not fit into memory"):
        explain(job_of("explain", {**configuration("explain", []), "source_length": 100_000}))


def test_a_length_without_weights_is_refused() -> None:
    message = (
        r"^source_length is 2,000, but scorer=location has weights for only [\d,]+ pieces in this model: use at most"
    )
    with pytest.raises(Mistake, match=message):
        explain(job_of("explain", {**configuration("explain", ["scorer=location"]), "source_length": 2000}))


def test_the_formula_comes_first() -> None:
    lines = explanation(model_of("model=luong", "scorer=additive"), 7, 5).split("\n")
    assert lines[0].startswith("cross: 1 layer")
    assert lines[1].startswith("  score      v . tanh(W q + U k)")


def test_a_run_is_counted_with_its_own_vocabulary(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = load_run(trained, "cpu")
    explain(job_of("explain", {**configuration("explain", []), "run_dir": str(trained)}, given=("run_dir",)))
    text = " ".join(capsys.readouterr().out.split())
    assert f"{sum(parameter.numel() for parameter in run.model.parameters()):,} parameters" in text
    assert f"{run.tokenizers.source.size:,} " in text.split("The parameters are counted for ")[1]
    with pytest.raises(Mistake, match="run_dir explains the model of that run, so model has no effect"):
        explain(
            job_of("explain", {**configuration("explain", []), "run_dir": str(trained)}, given=("run_dir", "model"))
        )
