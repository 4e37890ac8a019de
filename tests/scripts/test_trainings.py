"""What the scripts that train share: threads, and how a mistake is reported."""

import pytest

from nmt.errors import Mistake
from scripts.mistakes import report_mistakes
from scripts.studies.trainings import threads_each


def test_runs_share_the_cores_unless_their_threads_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [threads_each(jobs) for jobs in (1, 2, 9)] == [7, 3, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads_each(2) == 5


@pytest.mark.parametrize("given", ["0", "4,2", "²", ""])
def test_invalid_numbers_of_threads_are_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    with pytest.raises(Mistake, match=f"OMP_NUM_THREADS is '{given}'; it must be an integer of at least 1"):
        threads_each(2)


def test_a_mistake_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    def main(name: str) -> None:
        raise Mistake(f"{name} is wrong.")

    with pytest.raises(SystemExit) as ended:
        report_mistakes(main, "it")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: it is wrong.\n"
