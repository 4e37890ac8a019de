"""nmt.align: how well the links that attention shows agree with a human alignment, map by map."""

from pathlib import Path

from nmt.evaluation.alignment import Choice, Rates
from nmt.evaluation.tables import Table
from nmt.run.alignment import Links, alignment_error
from nmt.run.build import load_run
from nmt.run.compose import Job
from nmt.run.evaluate import check_files_given, chosen_task
from nmt.run.refusals import folder_to_write

_HEADER = ["shift", "layer", "head", "AER valid", "AER", "precision", "recall"]


def align(job: Job) -> None:
    """Prints and saves the rates of the argmax links of every shift, layer and head of the cross attention.

    The best on the validation split come first; where that has no alignments, the best on the sentences themselves.
    Raises ValueError where these have none.
    """
    config = job.config
    check_files_given(config, config["alignment"])
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    task = chosen_task(trained, config, config["alignment"])
    if task.gold is None:
        raise ValueError(
            "There is no gold alignment of these sentences; it lies beside a split as PREFIX.SOURCE-TARGET.align, and "
            "that of your own files is given by alignment=FILE."
        )
    found = alignment_error(trained, task.gold, task.valid_gold, config["batch_tokens"])
    result = _table(found)
    file = folder_to_write("out", task.out) / "alignment.csv"
    file.write_text(result.csv(), encoding="utf-8")
    print(result.markdown())
    print(f"Of the choice: AER {found.rates.aer:.3f} {found.note}")
    print(file)


def _table(found: Links) -> Table:
    by_valid = found.valid_table or found.table
    choices = sorted(found.table, key=lambda choice: by_valid[choice].aer)
    rows = [[*_place(choice), _valid(found, choice), *_cells(found.table[choice])] for choice in choices]
    return Table(_HEADER, [*rows, ["", "diagonal", "", "", *_cells(found.diagonal)]])


def _place(choice: Choice) -> list[str]:
    return [str(choice.shift), *("mean" if part is None else str(part) for part in (choice.layer, choice.head))]


def _valid(found: Links, choice: Choice) -> str:
    return f"{found.valid_table[choice].aer:.3f}" if found.valid_table else ""


def _cells(rates: Rates) -> list[str]:
    return [f"{rate:.3f}" for rate in rates]
