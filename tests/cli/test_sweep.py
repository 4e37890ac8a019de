"""The jobs of a sweep, and the table at its end."""


def test_every_command_reports_a_refused_job_of_its_sweep(command) -> None:
    ended = command("explain", "-m", "model=luong", "source_length=0,3")
    assert ended.code == 2
    assert "source_length is 0" in ended.errors
    assert "cross: 1 layer" in ended.output


def table_of(output: str) -> list[dict[str, str]]:
    """The rows of the first table in the output, by column."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines() if line.startswith("|")]
    header = lines[0]
    rows = lines[2 : next((n for n, line in enumerate(lines) if n and line[0] in ("scorer", "seeds")), len(lines))]
    return [dict(zip(header, line, strict=True)) for line in rows]


def test_a_sweep_ends_in_its_table(command, tiny, corpus) -> None:
    overrides = [item for item in tiny(trainer__max_steps=3) if not item.startswith("run_dir=")]
    ended = command("train", "-m", *overrides, "scorer=dot,additive", "model.num_heads=2,5")
    rows = table_of(ended.output)
    assert ended.code == 2
    assert {"job", "scorer", "model.num_heads", "BLEU", "p", "chrF2", "TER", "parameters", "tokens/s"} <= set(rows[0])
    assert {(row["scorer"], row["model.num_heads"]) for row in rows} == {("dot", "2"), ("additive", "2")}
    assert all(float(row["BLEU"].split()[0]) >= 0 for row in rows)
    refused = [line for line in ended.output.splitlines() if "num_heads=5 does not divide the query width 12" in line]
    assert [line.split(":")[0] for line in refused] == [
        "- job 2, model.num_heads 5, scorer dot",
        "- job 3, model.num_heads 5, scorer additive",
    ]
    assert ended.errors.count("num_heads=5 does not divide") == 2
    assert list(corpus.glob("runs/sweeps/*/comparison.csv"))


def test_two_jobs_at_a_time_end_in_the_same_table(start_python, tiny) -> None:
    """The launcher runs the jobs in processes of their own."""
    overrides = [item for item in tiny(trainer__max_steps=2) if not item.startswith("run_dir=")]
    process = start_python("train", "-m", *overrides, "seed=1,2,x", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    output, errors = process.communicate()
    rows = table_of(output)
    assert process.returncode == 2, errors
    assert [row["seed"] for row in rows] == ["1", "2"]
    assert all(float(row["BLEU"].split()[0]) >= 0 for row in rows)
    assert "- job 2, seed x: seed " in output
    assert "Mean ± standard deviation over seeds" in output
