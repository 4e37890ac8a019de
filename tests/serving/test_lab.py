"""The lab's interface: what it answers is what the library computes."""

import http.client
import json
import math
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from served_runs import LIMITS

import nmt
from nmt.config.nodes import read_yaml
from nmt.decoding.id_search import Hypothesis
from nmt.insight.attribution_maps import METHODS
from nmt.insight.known_alignments import agreement, aligned_pairs
from nmt.maps.links import MapSelector
from nmt.runs.engine import named_search
from nmt.runs.load import load_run
from nmt.scoring.test_sets import stored_pairs
from nmt.serving.application import application
from nmt.serving.batcher import Abandoned, Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.service import Access, Service

TEXT = {"run": "maps_transformer", "text": "one two three."}
# Answers have six digits.
ROUNDED = 0.5e-6 * (1 + 1e-9)
# Two ways to the same weight, through at most a hundred operations on numbers around 1.
FLOAT32 = 100 * float(np.finfo(np.float32).eps)


def test_runs_and_what_they_are(client: TestClient) -> None:
    runs = client.get("/v1/runs").json()
    assert [each["name"] for each in runs] == ["maps_luong", "maps_transformer"]
    run = client.get("/v1/runs/maps_transformer").json()
    assert (run["model"], run["source"], run["target"]) == ("Transformer", "en", "vi")
    assert run["sites"]["cross"]["scorer"] == "ScaledDot"
    assert (run["sites"]["cross"]["layers"], run["sites"]["cross"]["heads"]) == (2, 2)


def test_translations_and_attention_are_those_of_the_library(client: TestClient, here: Path) -> None:
    loaded = nmt.load("maps_transformer", device="cpu")
    [found] = client.post("/v1/translate", json=TEXT).json()["translations"]
    assert found["text"] == loaded.translate([TEXT["text"]])[0]
    attended = client.post("/v1/attend", json=TEXT).json()
    assert set(attended["maps"]) == {"encoder_self", "decoder_self", "cross"}
    [maps] = loaded.attend([TEXT["text"]])
    for item in maps:
        np.testing.assert_allclose(attended["maps"][item.site]["weights"], item.weights, rtol=0, atol=ROUNDED)
        assert attended["maps"][item.site]["columns"] == item.columns
    scored = client.post("/v1/score", json={**TEXT, "target": "một hai"}).json()
    [log_prob] = loaded.score([TEXT["text"]], ["một hai"])
    assert scored["log_prob"] == pytest.approx(log_prob, rel=0, abs=ROUNDED + FLOAT32 * abs(log_prob))
    terms = len(scored["log_probs"])
    assert math.fsum(scored["log_probs"]) == pytest.approx(scored["log_prob"], rel=0, abs=(terms + 1) * ROUNDED)


def events(client: TestClient, body: dict, path: str = "translate") -> list[tuple[str, dict]]:
    text = client.post(f"/v1/{path}/stream", json=body).text
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def test_a_translation_is_streamed_step_by_step(client: TestClient) -> None:
    *steps, (last, done) = events(client, TEXT)
    assert last == "done"
    assert {name for name, _ in steps} == {"beams"}
    assert done["text"] == client.post("/v1/translate", json=TEXT).json()["translations"][0]["text"]
    assert [len(step["beams"][0]["pieces"]) for _, step in steps] == list(range(1, len(steps) + 1))
    assert events(client, {**TEXT, "text": " "})[-1][0] == "error"


def test_each_step_of_a_stream_has_the_map_of_its_best_hypothesis(client: TestClient) -> None:
    where = {"site": "cross", "layer": 1, "head": 0}
    greedy = {**TEXT, "beam_size": 1}
    *steps, _ = events(client, {**greedy, **where})
    for _, step in steps:
        assert step["map"]["outputs"] == step["beams"][0]["pieces"]
    last = steps[-1][1]["map"]
    target = client.post("/v1/attend", json=greedy).json()
    rows = len(last["outputs"])
    assert rows
    assert last["outputs"] == target["pieces"][:rows]
    whole = np.array(target["maps"]["cross"]["weights"])[1, 0, :rows]
    np.testing.assert_allclose(np.array(last["weights"])[0, 0], whole, rtol=0, atol=2 * ROUNDED + FLOAT32)
    encoder = events(client, {**TEXT, "site": "encoder_self"})[0][1]["map"]
    assert encoder["outputs"] == encoder["columns"]
    assert events(client, {**TEXT, **where, "head": 5})[-1] == (
        "error",
        {"error": "head is 5; cross has heads 0 to 1.", "status": 400},
    )
    luong = {"run": "maps_luong", "text": TEXT["text"], "site": "decoder_self"}
    assert events(client, luong)[-1][1]["error"].startswith("Unknown attention site 'decoder_self'")


def test_a_stream_ends_with_an_error_after_a_defect(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a secret path")

    monkeypatch.setattr("nmt.serving.streams.watched_search", fails)
    sentence = "Internal error; the server's log has the details."
    assert events(client, TEXT) == [("error", {"error": sentence, "status": 500})]


def test_a_translation_that_is_too_long_to_be_shown_is_no_fault_of_the_target(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Hypothesis([5] * 200, -1.0, -1.0)
    monkeypatch.setattr("nmt.serving.streams.watched_search", lambda *_: [found])
    monkeypatch.setattr("nmt.serving.answers.best_translation", lambda *_, **__: found.ids)
    told = "The translation has 200 pieces, but the lab shows at most 199; shorten the sentence."
    assert events(client, TEXT) == [("error", {"error": told, "status": 400})]
    for path, more in (("attend", {}), ("score", {}), ("intervene", {"changes": [{"temperature": 2.0}]})):
        answer = client.post(f"/v1/{path}", json={**TEXT, **more})
        assert (answer.status_code, answer.json()) == (400, {"error": told})
    answer = client.post("/v1/attend", json=TEXT, headers={"accept-language": "vi"})
    assert answer.json()["error"] == (
        "Bản dịch có 200 từ con, nhưng phòng thực hành chỉ hiện được nhiều nhất 199 từ con; hãy rút ngắn câu."
    )


def test_a_prefix_is_kept_and_a_taken_piece_goes_on(client: TestClient) -> None:
    found = client.post("/v1/alternatives", json={**TEXT, "number": 3}).json()
    second = next(each for each in found["alternatives"][0] if each["piece"] != found["pieces"][0] and each["id"] > 3)
    attended = client.post("/v1/attend", json={**TEXT, "prefix_ids": [second["id"]]}).json()
    assert attended["pieces"][0] == second["piece"]
    assert [len(place) for place in found["alternatives"]] == [3] * len(found["pieces"])
    assert all(place == sorted(place, key=lambda each: -each["log_prob"]) for place in found["alternatives"])


def test_an_intervention_of_the_page(client: TestClient) -> None:
    asked = {**TEXT, "target": "một hai ba.", "changes": [{"way": "scale", "columns": [0], "factor": 0.0}]}
    found = client.post("/v1/intervene", json=asked).json()
    assert found["intact"]["pieces"] == found["forced"]["pieces"]
    weights = np.array(found["forced"]["maps"]["cross"]["weights"])
    assert (weights[..., 0] == 0).all()
    assert found["forced"]["log_prob"] != found["intact"]["log_prob"]


@pytest.mark.parametrize(
    "change",
    [
        {"way": "off", "layer": 1, "head": 0},
        {"way": "uniform", "steps": [1]},
        {"way": "shuffled"},
        {"way": "weights", "weights": [0.5, 0.5]},
        {"way": "head", "head": 0, "other_head": 1},
        {"temperature": 2.0},
        {"normalizer": "sparsemax"},
        {"half_width": 1},
    ],
)
def test_every_kind_of_change(client: TestClient, change: dict) -> None:
    answer = client.post("/v1/intervene", json={**TEXT, "changes": [change]})
    assert answer.status_code == 200, answer.json()


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("translate", {**TEXT, "run": "x"}, 404, "There is no run 'x'; use one listed at /v1/runs."),
        ("translate", {**TEXT, "n_best": 9}, 400, "n_best is 9; it must be at most 4."),
        (
            "translate",
            {**TEXT, "n_best": 3, "beam_size": 2},
            400,
            "Invalid request: beam_size: Input should be greater than or equal to n_best, which is 3",
        ),
        ("attend", {**TEXT, "text": " "}, 400, "The source is empty; write a sentence."),
        ("attend", {**TEXT, "target_ids": [1]}, 400, "target_ids must be from 4 to 292; smaller ids are PAD"),
        ("attend", {**TEXT, "targt": "x"}, 400, "Invalid request: targt: Extra inputs are not permitted"),
        ("score", {**TEXT, "target": " "}, 400, "The target is empty; write a sentence."),
        ("explain", {**TEXT, "row": 10**30}, 400, "Invalid request: row: Input should be less than 10000"),
        ("intervene", {**TEXT, "changes": [{"way": "scale", "columns": [10**30]}]}, 400, "Invalid request: changes.0."),
        ("intervene", {**TEXT, "changes": [{"half_width": 10**30}]}, 400, "Invalid request: changes.0.half_width: "),
        (
            "intervene",
            {**TEXT, "changes": [{"temperature": -1}]},
            400,
            "Invalid request: changes.0.temperature: Input should be greater than or equal to 0.001",
        ),
        (
            "attend",
            {**TEXT, "prefix_ids": [5] * 201},
            400,
            "The prefix has 201 pieces; shorten it to at most 199.",
        ),
        ("align", TEXT, 400, "The alignment of this sentence is not known; use a sentence from /v1/examples."),
        ("align", {**TEXT, "text": "How old is Mai?", "head": 7}, 400, "head is 7; cross has heads 0 to 1."),
        ("explain", {**TEXT, "row": 99}, 400, "row is 99; cross has rows 0 to "),
        ("intervene", {**TEXT, "changes": [{}]}, 400, "The intervention changes nothing: set way"),
        ("intervene", {**TEXT, "changes": []}, 400, "Invalid request: changes: List should have at least 1 item"),
        (
            "intervene",
            {**TEXT, "changes": [{"way": "weights", "weights": [0.9, 0.9]}]},
            400,
            "weights must be one number for each key, each at least 0, with a sum of at most 1.",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(
    client: TestClient, path: str, body: dict, status: int, message: str
) -> None:
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)


@pytest.mark.parametrize("run", ["maps_luong", "maps_transformer"])
def test_a_cell_is_explained_by_numbers_that_fit_together(client: TestClient, run: str) -> None:
    asked = {**TEXT, "run": run, "target": "một hai ba."}
    weights = client.post("/v1/attend", json=asked).json()["maps"]["cross"]["weights"]
    found = client.post("/v1/explain", json={**asked, "layer": 0, "head": 1, "row": 2}).json()
    np.testing.assert_allclose(found["weights"], weights[0][1][2], rtol=0, atol=2 * ROUNDED + FLOAT32)
    # Six digits each: sums of products of so many terms are off by that many roundings.
    tolerance = 1e-6 * len(found["weights"]) * (1 + np.abs(found["values"]).max())
    np.testing.assert_allclose(np.array(found["weights"]) @ np.array(found["values"]), found["context"], atol=tolerance)
    allowed = np.array(found["allowed"])
    scores = np.where(allowed, found["scores"], -np.inf)
    expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    if found["log_prior"] is not None:
        expected = expected * np.exp(found["log_prior"])
    # A score and the sum of all exponentials are rounded, a prior, and the weight itself; each weight is at most 1.
    np.testing.assert_allclose(found["weights"], expected, rtol=0, atol=4 * ROUNDED + FLOAT32)


def test_the_links_of_an_example_are_those_of_the_library(client: TestClient, here: Path) -> None:
    examples = client.get("/v1/examples", params={"run": "maps_transformer"}).json()
    [first, *others] = [example for example in examples if example["aligned"]]
    assert len(others) == 11
    trained = load_run(Path("maps_transformer"), "cpu")
    pair = aligned_pairs(trained.direction)[0]
    assert (first["source"], first["target"]) == (pair.source, pair.target)
    guess = [[0, 0], [2, 1]]
    body = {"run": "maps_transformer", "text": pair.source, "layer": 1, "head": 0, "guess": guess}
    answered = client.post("/v1/align", json=body).json()
    expected = agreement(trained, pair, MapSelector("predicts", 1, 0), [(0, 0), (2, 1)])
    assert answered["links"]["guess"] == guess
    assert {tuple(link) for link in answered["links"]["model"]} == expected.links["model"]
    assert answered["rates"] == {name: each._asdict() for name, each in expected.rates.items()}
    np.testing.assert_allclose(answered["weights"], expected.weights, rtol=0, atol=ROUNDED)
    assert np.array(answered["error_rates"]).shape == (2, 2), "of each layer and head"
    assert answered["error_rates"][1][0] == expected.rates["model"].aer
    gold = {tuple(link) for link in [*answered["sure"], *answered["possible"]]}
    assert gold == pair.gold.possible


def test_the_first_examples_are_sentences_that_the_run_stores(client: TestClient, here: Path) -> None:
    examples = client.get("/v1/examples", params={"run": "maps_transformer"}).json()
    own = [(example["source"], example["target"]) for example in examples if not example["aligned"]]
    stored = stored_pairs(load_run(Path("maps_transformer"), "cpu"))
    assert stored is not None
    assert own == list(zip(*stored[1], strict=True))[: len(own)]
    assert 1 <= len(own) <= 6
    assert [example["aligned"] for example in examples] == [False] * len(own) + [True] * 12


def test_search_settings_are_those_of_the_library(client: TestClient, here: Path) -> None:
    loaded = nmt.load("maps_transformer", device="cpu")
    greedy = events(client, {**TEXT, "beam_size": 1})
    assert {len(step["beams"]) for name, step in greedy if name == "beams"} == {1}
    assert greedy[-1][1]["text"] == loaded.translate([TEXT["text"]], beam_size=1)[0]
    attended = client.post("/v1/attend", json={**TEXT, "beam_size": 1, "length_penalty": 0}).json()
    assert attended["text"] == loaded.translate([TEXT["text"]], beam_size=1, length_penalty=0.0)[0]
    asked = {**TEXT, "n_best": 2, "beam_size": 3, "length_penalty": 0}
    [first, second] = client.post("/v1/translate", json=asked).json()["translations"]
    assert first["score"] == first["log_prob"], "without a penalty"
    [alone] = client.post("/v1/translate", json={**asked, "n_best": 1}).json()["translations"]
    assert alone["text"] == first["text"] == loaded.translate([TEXT["text"]], beam_size=3, length_penalty=0.0)[0]
    assert second["score"] <= first["score"]


@pytest.fixture
def sampling(folder: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A server of a run that samples three translations."""
    run = shutil.copytree(folder / "maps_luong", tmp_path / "sampling")
    config = read_yaml(run / "config.yaml")
    config["search"] = {**named_search("sampling"), "samples": 3}
    (run / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    gallery = Gallery([run], "cpu", "float32", max_models=1)
    service = Service(gallery, Batcher(gallery, 400, 0.0, 100), LIMITS, Access(frozenset(), None, ()))
    with TestClient(application(service), base_url="http://localhost") as client:
        yield client


def test_a_run_that_samples_gives_samples_and_takes_no_beam(sampling: TestClient) -> None:
    asked = {"q": "one two.", "source": "en", "target": "vi", "alternatives": 3}
    assert len(sampling.post("/translate", json=asked).json()["alternatives"]) == 3, "one more than the run's own"
    text = {"text": TEXT["text"]}
    two = sampling.post("/v1/translate", json={**text, "n_best": 2}).json()["translations"]
    assert len(two) == 2
    assert sampling.post("/v1/translate", json=text).json()["translations"] == two[:1], "the same samples"
    for path, settings in (
        ("translate", {"n_best": 2, "beam_size": 2}),
        ("translate", {"beam_size": 1}),
        ("translate", {"length_penalty": 1.0}),
        ("attend", {"length_penalty": 1.0}),
        ("score", {"target": "một", "beam_size": 2}),
    ):
        name = [*settings][-1]
        answer = sampling.post(f"/v1/{path}", json={**text, **settings})
        told = f"{name} sets a beam search, but this run samples; leave out {name}."
        assert (answer.status_code, answer.json()) == (400, {"error": told})
        answer = sampling.post(f"/v1/{path}", json={**text, **settings}, headers={"accept-language": "vi"})
        assert answer.json()["error"] == (
            f"{name} là thiết lập của tìm kiếm chùm (beam search), nhưng mô hình này dịch bằng cách lấy mẫu; "
            f"hãy bỏ {name}."
        )
    [(_, error)] = events(sampling, {**text, "beam_size": 2})
    assert error["error"].startswith("beam_size sets a beam search")
    [(_, error)] = events(sampling, text)
    assert error["error"].startswith("Only a beam search has steps to watch")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("run", ["maps_transformer", "maps_luong"])
def test_attributions_are_those_of_the_library(client: TestClient, here: Path, run: str, method: str) -> None:
    loaded = nmt.load(run, device="cpu")
    asked = {"run": run, "text": TEXT["text"], "target": "một hai", "method": method}
    found = client.post("/v1/attribute", json=asked).json()
    [[item]] = loaded.attribute([TEXT["text"]], ["một hai"], method=method)
    assert (found["outputs"], found["columns"]) == (item.outputs, item.columns)
    # float32 gradients of two computations, each rounded to six digits.
    largest = float(np.abs(item.attribution).max())
    np.testing.assert_allclose(found["attribution"], item.attribution[0, 0], rtol=0, atol=ROUNDED + FLOAT32 * largest)
    np.testing.assert_allclose(np.abs(found["weights"]).sum(axis=-1), 1, rtol=0, atol=10 * ROUNDED)


def test_an_attribution_explains_the_preference_over_another_piece(client: TestClient, here: Path) -> None:
    loaded = nmt.load(TEXT["run"], device="cpu")
    asked = {**TEXT, "target": "một hai", "contrast": "</s>"}
    [[item]] = loaded.attribute([TEXT["text"]], ["một hai"], method="occlusion", contrast="</s>")
    found = client.post("/v1/attribute", json=asked).json()
    largest = float(np.abs(item.attribution).max())
    np.testing.assert_allclose(found["attribution"], item.attribution[0, 0], rtol=0, atol=ROUNDED + FLOAT32 * largest)
    for wrong, sentence in (
        ({"contrast": "một hai"}, "it must be one piece of the target vocabulary"),
        ({"method": "value_zeroing", "contrast": "</s>"}, "method=value_zeroing takes no contrast"),
        ({"method": "lime"}, "Invalid request: method"),
        ({"contrast": ""}, "contrast is '', which is not a piece"),
        ({"contrast": "<unk>"}, "it must be one piece of the target vocabulary"),
        ({"target": ""}, "The target is empty"),
        ({"target": None, "target_ids": []}, "The target is empty"),
    ):
        answer = client.post("/v1/attribute", json={**asked, **wrong})
        assert answer.status_code == 400
        assert sentence in answer.json()["error"]


def test_an_attribution_that_nobody_waits_for_ends(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []

    def stop(self: Batcher, step: object = None) -> None:
        passes.append(1)
        if len(passes) == 3:
            raise Abandoned

    monkeypatch.setattr(Batcher, "between_steps", stop)
    answer = client.post("/v1/attribute", json={**TEXT, "target": "một hai", "method": "gradient_x_input"})
    assert answer.status_code != 200
    assert len(passes) == 3


@pytest.mark.parametrize("method", ["integrated_gradients", "gradient_x_input"])
def test_an_attribution_is_streamed_with_its_percentage(client: TestClient, method: str) -> None:
    asked = {**TEXT, "target": "một hai", "method": method}
    *steps, (last, done) = events(client, asked, "attribute")
    assert (last, done) == ("done", client.post("/v1/attribute", json=asked).json())
    assert {name for name, _ in steps} == {"progress"}
    percent = [step["percent"] for _, step in steps]
    assert percent[0] == 0
    assert percent == sorted(set(percent)), "each at most once"
    assert 40 <= percent[-1] <= 100
    [(name, error)] = events(client, {**asked, "contrast": "một hai"}, "attribute")
    assert name == "error"
    assert "it must be one piece of the target vocabulary" in error["error"]


def test_an_attribution_ends_when_its_client_disconnects(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own, begun, ended = Batcher.between_steps, threading.Event(), threading.Event()

    def first_pass(self: Batcher, step: object = None) -> None:
        begun.set()
        until = time.monotonic() + 60
        while time.monotonic() < until:  # until the client is missed
            try:
                own(self, step)
            except Abandoned:
                ended.set()
                raise
            time.sleep(0.01)

    monkeypatch.setattr(Batcher, "between_steps", first_pass)
    asked = {**TEXT, "target": "một hai ba bốn", "method": "integrated_gradients"}
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.request("POST", "/v1/attribute/stream", json.dumps(asked), {"content-type": "application/json"})
    assert begun.wait(20)
    connection.close()
    assert ended.wait(20)
