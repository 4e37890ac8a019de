"""Pretraining from the command line: exact resume, what starts from it, and what refuses it."""

import contextlib
import gzip
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from nmt.attention.normalizers import Sparsemax
from nmt.attention.scorers import Additive, GaussianLearned, General
from nmt.cli.compose import configuration
from nmt.cli.compose import job_of as composed_job
from nmt.commands.average import average
from nmt.commands.export_attention import export_attention
from nmt.commands.pretrain import pretrain
from nmt.commands.serve import serve
from nmt.commands.train import train
from nmt.commands.translate import translate
from nmt.config.job import Job
from nmt.config.schema import PretrainSettings, validated
from nmt.errors import Mistake
from nmt.maps.map_files import MapFolder
from nmt.maps.recorder import Recorder
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import load_encoder
from nmt.runs.load import load_run
from nmt.serving.gallery import Gallery
from nmt.training.preparation import prepare
from nmt.training.pretraining import MaskedPretraining
from nmt.training.start_from import inherited_tokenizers
from nmt.training.translation import Translation

MODEL = {"model.dim": 12, "model.ffn_dim": 19, "model.num_heads": 2, "model.num_layers": 1}
TINY = {
    "data.train": "[train.en,train.vi]",
    "data.valid_lines": 9,
    "tokenizer.size": 293,
    "filters.drop_duplicates": "false",
    **MODEL,
    "batching.batch_tokens": 101,
    "optimizer.lr": 0.01,
    "schedule.warmup": 7,
    "trainer.accelerator": "cpu",
    "trainer.max_steps": 28,
    "trainer.log_every_n_steps": 2,
    "validation.every": 7,
    "run_dir": "pretrained",
}


def overrides(changes: dict[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in {**TINY, **changes}.items()]


def job_of(changes: dict[str, object] | None = None) -> Job:
    changes = changes or {}
    config = configuration("pretrain", overrides(changes))
    given = tuple(changes)
    return Job(config, validated(PretrainSettings, config), given, "python -m nmt.pretrain THE COMMAND", None)


@pytest.fixture(scope="session")
def pretrained_once(session_corpus: Path) -> Path:
    """A pretrained encoder in the session's folder."""
    torch.set_num_threads(1)
    with contextlib.chdir(session_corpus):
        pretrain(job_of())
    return session_corpus / "pretrained"


@pytest.fixture
def pretrained(pretrained_once: Path, corpus_copy: Path) -> Path:
    """A copy of it in a folder with the corpus, entered; its path there."""
    shutil.copytree(pretrained_once, corpus_copy / "pretrained")
    return Path("pretrained")


def test_a_killed_and_resumed_run_ends_with_identical_weights(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], pretrained_once: Path
) -> None:
    changes = {"trainer.accumulate_grad_batches": 2, "trainer.max_steps": 12, "validation.every": 5}
    whole = start("pretrain", *overrides({**changes, "run_dir": "whole"}))
    output, errors = whole.communicate()
    assert whole.returncode == 0, errors
    killed = start("pretrain", *overrides({**changes, "run_dir": "killed"}), sent=(signal.SIGKILL, 8))
    assert killed.communicate()[0] == ""
    assert killed.returncode == -signal.SIGKILL
    resumed = start("pretrain", *overrides({**changes, "run_dir": "killed"}), "resume=true")
    again, errors = resumed.communicate()
    assert "resumed from last.ckpt" in errors
    assert again.splitlines()[1:] == output.splitlines()[1:]
    states = [
        torch.load(corpus / name / "checkpoints" / "last.ckpt", weights_only=True) for name in ("whole", "killed")
    ]
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "target_tokens", "global_step"):
        torch.testing.assert_close(states[0][key], states[1][key], rtol=0, atol=0)
    best = [load_file(corpus / name / "model.safetensors") for name in ("whole", "killed")]
    torch.testing.assert_close(*best, rtol=0, atol=0)


def test_a_style_of_tone_marks_needs_a_vietnamese_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, opened in {"a.en": open, "a.vi.gz": gzip.open}.items():
        with opened(name, "wt", encoding="utf-8") as file:
            file.writelines(f"{number}\n" for number in range(9))
    changes = {"tokenizer.tone_marks": "new", "data.valid_lines": 1, "data.exclude": "[]", "data.vocabulary": "[]"}
    with pytest.raises(
        Mistake,
        match=r"^tokenizer\.tone_marks=new is a style of Vietnamese, but no file of data\.train, .* is Vietnamese "
        r"\(\*\.vi\): set tokenizer\.tone_marks=null, or rename the files\.$",
    ):
        MaskedPretraining().corpora(job_of({**changes, "data.train": "[a.en]"}).settings, tmp_path)
    MaskedPretraining().corpora(job_of({**changes, "data.train": "[a.en,a.vi.gz]"}).settings, tmp_path)


def test_the_loss_falls_and_the_record_has_loss_and_accuracy(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus)
    pretrain(job_of({"validation.every": 1, "trainer.max_steps": 1, "run_dir": "short"}))
    pretrain(job_of({"validation.every": 50, "trainer.max_steps": 150, "run_dir": "long"}))
    short, long = (RunDirectory(corpus / name).metrics() for name in ("short", "long"))
    assert capsys.readouterr().out.splitlines()[-2] == "long"
    # The sentences are number words in random order, so more than their frequencies cannot be learned.
    assert long["scores"]["valid"]["loss"] < 0.8 * short["scores"]["valid"]["loss"]
    assert long["scores"]["valid"]["accuracy"] > short["scores"]["valid"]["accuracy"]
    assert long["best"]["metric"] == "valid_loss"
    # The loss during training is summed batch by batch in float32.
    assert long["best"]["value"] == pytest.approx(long["scores"]["valid"]["loss"], abs=2e-4)
    logged = next((corpus / "long" / "logs").rglob("metrics.csv")).read_text(encoding="utf-8")
    for name in ("train_loss", "train_accuracy", "valid_loss", "valid_accuracy"):
        assert name in logged.splitlines()[0]


@pytest.mark.parametrize("changes", [{}, {"scorer": "additive"}, {"scorer@cross": "additive"}], ids=str)
def test_a_translation_model_starts_with_the_encoder_and_the_embeddings(
    pretrained: Path, job: Callable[..., Job], changes: dict[str, str]
) -> None:
    scorers = {key: value for key, value in changes.items()}
    plain = job("train")
    given = [f"{key}={value}" for key, value in scorers.items()]
    config = configuration("train", [*_tiny_overrides(plain), *given, f"start_from={pretrained}", "run_dir=from"])
    job_from = Job(config, validated(type(plain.settings), config), (*scorers, "start_from"), "THE COMMAND", None)
    prepared = prepare(job_from, RunDirectory(Path("from")), Translation(), resumes=False, changes={})
    encoder = load_encoder(pretrained, "cpu")
    assert prepared.tokenizers.source.model == encoder.tokenizers.source.model
    assert prepared.tokenizers.joint
    theirs = encoder.model.state_dict()
    ours = prepared.model.state_dict()
    for name in theirs:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=0)
    source = torch.tensor([[5, 9, 200, 3]])
    states = encoder.model(source, source != 0)
    memory = prepared.model.eval().encode(source, source != 0)
    expected = prepared.model.decoder[0].cross.project(states)
    torch.testing.assert_close(memory.cross[0], expected, rtol=0, atol=0)
    cross = prepared.model.sites["cross"][0].scorer
    assert type(cross).__name__ == ("Additive" if changes else "ScaledDot")
    assert type(prepared.model.sites["encoder_self"][0].scorer).__name__ == "ScaledDot"


def _tiny_overrides(plain: Job) -> list[str]:
    """The corpus and the machine of the tiny training, without its model and its tokenizer."""
    return [
        "data=files",
        "data.train=[train]",
        "data.valid=valid",
        "data.test=test",
        "filters.drop_overlap=false",
        "batching.batch_tokens=101",
        "trainer.accelerator=cpu",
        "trainer.max_steps=4",
        "validation.every=2",
        "validation.sentences=5",
    ]


def test_a_run_that_starts_from_it_is_trained_and_resumed(
    pretrained: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    train(job("train", run_dir="continued", start_from="pretrained", trainer__max_steps=2, validation__every=2))
    assert load_run(Path("continued"), "cpu").directory.metrics()["start_weights"]
    train(
        job(
            "train",
            run_dir="continued",
            start_from="pretrained",
            trainer__max_steps=4,
            validation__every=2,
            resume="true",
        )
    )
    assert capsys.readouterr().out.splitlines()[0] == "continued"


def test_a_run_writes_the_encoders_style_of_tone_marks_on_its_vietnamese_side(pretrained: Path) -> None:
    config = (pretrained / "config.yaml").read_text(encoding="utf-8")
    (pretrained / "config.yaml").write_text(config.replace("tone_marks: null", "tone_marks: old"), encoding="utf-8")
    styles = {}
    for direction in ("en-vi", "vi-en", "en-fr"):
        command = [f"start_from={pretrained}", f"direction={direction}", "run_dir=new"]
        origin = Translation().new(composed_job("train", command, command), RunDirectory(Path("new")), {})
        assert origin.settings.tokenizer.tone_marks == (None if direction == "en-fr" else "old")
        pair = inherited_tokenizers(origin.start, origin.settings.direction)
        assert pair.joint
        styles[direction] = (pair.source.tone_marks, pair.target.tone_marks)
    assert styles == {"en-vi": (None, "old"), "vi-en": ("old", None), "en-fr": (None, None)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__dim": 16}, r"has a different model or different tokenizers: .* use its settings: model\.dim=12\."),
        ({"model__num_layers": 2}, r"use its settings: model\.num_layers=1\."),
        ({"tokenizer__size": 400}, r"use its settings: tokenizer\.size=293\."),
        ({"tokenizer__joint": "false"}, r"use its settings: tokenizer\.joint=true\."),
        ({"model": "luong"}, "is the encoder of a Transformer: add model=transformer to the command"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(
    pretrained: Path, job: Callable[..., Job], changes: dict[str, object], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        train(_without_model_sizes(job, changes))


def _without_model_sizes(job: Callable[..., Job], changes: dict[str, object]) -> Job:
    """A job with the changes, whose model sizes fit the chosen model."""
    if "model" not in changes:
        return job("train", start_from="pretrained", **changes)
    plain = job("train")
    given = [f"{key}={value}" for key, value in changes.items()]
    config = configuration("train", [*_tiny_overrides(plain), *given, "start_from=pretrained", "run_dir=run"])
    return Job(config, validated(type(plain.settings), config), tuple(changes), "THE COMMAND", None)


def test_its_maps_are_those_of_the_encoder(
    pretrained: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("in.en").write_text("one two.\n\nseven six five.\n", encoding="utf-8")
    export_attention(job("export_attention", run_dir="pretrained", input="in.en", out="maps"))
    assert "viewer.html" in capsys.readouterr().out
    encoder = load_encoder(pretrained, "cpu")
    sentences = list(MapFolder(Path("maps")).sentences())
    assert [sentence.line for sentence in sentences] == [1, 3]
    for sentence in sentences:
        [found] = sentence.maps
        assert found.site == "encoder_self"
        assert found.inputs == found.columns == [*sentence.source_pieces, "</s>"]
        ids = [encoder.tokenizers.source.id_of(piece) for piece in sentence.source_pieces]
        source = torch.tensor([[*ids, 3]])
        recorder = Recorder()
        encoder.model(source, source != 0, watch=recorder)
        # Two softmax sums of some ten terms in float32.
        np.testing.assert_allclose(found.weights, recorder.layers["encoder_self"][0].weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "in.en"}, "target has no effect on pretrained, which is a pretrained encoder: leave out target"),
        ({"documents": "in.doc"}, "documents has no effect on pretrained, which is a pretrained encoder: leave out"),
        ({"search.beam_size": "7"}, "search has no effect on pretrained, which is a pretrained encoder: leave out"),
        ({"site": "cross"}, "no attention at site 'cross', only at encoder_self"),
        ({"formats": "[alignments]"}, "formats includes alignments, but pretrained has no targets: leave alignments"),
    ],
    ids=str,
)
def test_maps_that_need_a_target_are_refused(
    pretrained: Path, job: Callable[..., Job], changes: dict[str, str], message: str
) -> None:
    Path("in.en").write_text("one two.\n", encoding="utf-8")
    with pytest.raises(Mistake, match=message):
        export_attention(job("export_attention", run_dir="pretrained", input="in.en", out="maps", **changes))


@pytest.mark.parametrize(
    ("name", "run", "changes"),
    [
        ("translate", translate, {"run_dir": "pretrained"}),
        ("average", average, {"run_dir": "pretrained"}),
        ("serve", serve, {"run_dirs": "[pretrained]"}),
        ("train", train, {"run_dir": "pretrained", "resume": "true"}),
    ],
)
def test_commands_for_translation_models_refuse_it(
    pretrained: Path, job: Callable[..., Job], name: str, run: Callable[[Job], None], changes: dict[str, str]
) -> None:
    message = r"pretrained holds a pretrained encoder, which cannot translate: .* -m nmt\.train start_from=pretrained'"
    with pytest.raises(Mistake, match=message):
        run(job(name, **changes))


def test_a_folder_of_runs_is_served_without_it(pretrained: Path, folder: Path) -> None:
    Path("served").mkdir()
    shutil.copytree(pretrained, "served/encoder")
    with pytest.raises(Mistake, match="served contains no finished run"):
        Gallery([Path("served")], "cpu", "float32", 1)
    shutil.copytree(folder / "maps_luong", "served/luong")
    assert set(Gallery([Path("served")], "cpu", "float32", 1).offered) == {"luong"}


def test_a_translation_model_is_not_resumed_as_pretraining(trained: Path) -> None:
    with pytest.raises(Mistake, match="run holds a translation model, not a pretrained encoder: resume it with"):
        pretrain(job_of({"run_dir": "run", "resume": "true"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data.train": "[]"}, r"data\.train is empty; name at least one text file, as in data\.train=\[my/text\.en\]"),
        ({"data.valid": "[]"}, r"data\.valid is empty; name at least one text file"),
        ({"data.train": "[train]"}, r"There is no file train\. Did you mean train\.en or train\.vi\?"),
        ({"data.valid_lines": 200}, r"train\.en has 211 lines, .* set data\.valid_lines to less than 200"),
        ({"filters.max_tokens": 2}, r"No training line is left: 404 lines, 0 kept .* 404 too long"),
        ({"tokenizer.joint": "false"}, "tokenizer.joint is false, but pretraining uses one vocabulary: leave out tok"),
        ({"masking.random": 0.5}, r"masking\.mask \+ masking\.random is 1\.3; the sum must be at most 1"),
        ({"masking.share": 0}, "masking.share is 0; it must be above 0 and at most 1"),
        ({"model.num_heads": 5}, "model.num_heads=5 does not divide the query width 12"),
        ({"scorer": "location", "scorer.max_length": 5}, r"The longest line of the training text has \d+ pieces"),
        ({"resume": "true", "run_dir": "none"}, "There is no run to resume in none"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_before_anything_is_written(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(corpus)
    with pytest.raises(Mistake, match=message):
        pretrain(job_of(changes))
    assert not (corpus / "pretrained").exists()


@pytest.mark.parametrize(
    ("scorer", "kind"), [("additive", Additive), ("general", General), ("gaussian_learned", GaussianLearned)]
)
def test_every_scorer_and_normalizer_pretrains(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, scorer: str, kind: type
) -> None:
    monkeypatch.chdir(corpus)
    pretrain(job_of({"scorer": scorer, "normalizer": "sparsemax", "trainer.max_steps": 2, "validation.every": 2}))
    [site] = load_encoder(Path("pretrained"), "cpu").model.sites["encoder_self"]
    assert type(site.normalizer) is Sparsemax
    assert type(site.scorer) is kind


def test_the_vocabulary_may_have_another_language(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one language alone, a word of the other is bytes."""
    monkeypatch.chdir(corpus)
    for name, vocabulary in (("one", "[]"), ("both", "[train.vi]")):
        pretrain(
            job_of(
                {
                    "data.train": "[train.en]",
                    "data.vocabulary": vocabulary,
                    "tokenizer.size": "null",
                    "run_dir": name,
                    "trainer.max_steps": 1,
                    "validation.every": 1,
                }
            )
        )
    one, both = (load_encoder(Path(name), "cpu").tokenizers.source for name in ("one", "both"))
    assert any(piece.startswith("<0x") for piece in one.pieces(one.encode("một")))
    assert not any(piece.startswith("<0x") for piece in both.pieces(both.encode("một")))


def test_an_encoder_keeps_no_recent_checkpoints_because_nothing_averages_them() -> None:
    with pytest.raises(Mistake, match=r"checkpoints\.recent"):
        composed_job("pretrain", ["checkpoints.recent=2"], [])
