"""What a sweep shows while it runs."""

import io
import json

from rich.console import Console

from curious_replay.sweep.sweep import Sweep, TaskState
from curious_replay.sweep.table import ROWS, SweepTable
from curious_replay.sweep.task import Task


def entry(folder, name, status, step=None, **values):
    if step is not None:
        (folder / name).mkdir()
        (folder / name / "metrics.jsonl").write_text(
            json.dumps({"frame": step, "step": step}) + "\n"
        )
    return TaskState(Task(name, {"train": {"steps": 2000}}, folder / name), status, **values)


def table_of(entries, terminal=False):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, no_color=True)
    sweep = Sweep({each.task.name: each for each in entries})
    return SweepTable(console, sweep, "title"), sweep, out


def printed(table):
    out = io.StringIO()
    Console(file=out, width=100).print(table.picture())
    return out.getvalue().splitlines()


def test_runs_under_way_come_first_with_their_progress(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    table, _, _ = table_of([
        entry(tmp_path, "done", "complete"),
        entry(tmp_path, "later", "waiting"),
        entry(tmp_path, "broken", "failed", attempts=3, reason="no floor"),
        entry(tmp_path, "now", "running", step=500, attempts=1),
    ])  # fmt: skip
    table.show()
    lines = printed(table)
    assert [line.split()[0] for line in lines[1:5]] == ["now", "broken", "later", "done"]
    assert "running, attempt 2" in lines[1]
    assert "500 of 2,000" in lines[1]
    assert lines[1].split()[-1] == "–"  # its pace is not known yet
    assert "2,000 of 2,000" in lines[4]
    assert lines[5] == "1 running, 1 failed, 1 waiting, 1 complete"
    now[0] += 60.0
    (tmp_path / "now" / "metrics.jsonl").write_text('{"frame": 1000, "step": 1000}\n')
    assert printed(table)[1].split()[-1] == "0:02:00"  # as long as 1,000 steps take at this pace


def test_a_long_table_says_what_it_leaves_out(tmp_path):
    table, _, _ = table_of([entry(tmp_path, f"run-{i}", "waiting") for i in range(ROWS + 5)])
    lines = printed(table)
    assert len(lines) == ROWS + 2
    assert lines[-1] == f"{ROWS + 5} waiting; 5 not shown"


def test_without_a_terminal_each_change_is_a_line(tmp_path):
    table, sweep, out = table_of([entry(tmp_path, "a", "waiting"), entry(tmp_path, "b", "waiting")])
    with table:
        sweep.entries["a"].status = "running"
        table.show()
        table.show()
        sweep.entries["a"].status = "complete"
        sweep.entries["b"].status, sweep.entries["b"].reason = "failed", "no floor"
        table.show()
    assert out.getvalue().splitlines() == [
        "title",
        "0/2 complete  running  a",
        "1/2 complete  complete  a",
        "1/2 complete  failed  b: no floor",
    ]


def test_on_a_terminal_the_table_renews_itself(tmp_path):
    table, sweep, out = table_of([entry(tmp_path, "a", "running", step=10)], terminal=True)
    with table:
        table.show()
        sweep.entries["a"].status = "complete"
    shown = out.getvalue()
    assert shown.index("10 of 2,000") < shown.index("2,000 of 2,000")


def test_runs_with_long_names_can_be_told_apart(tmp_path):
    names = [f"{'object-interaction-plan2explore-curious-' * 3}seed={seed}" for seed in (0, 1)]
    table, _, _ = table_of([entry(tmp_path, name, "waiting") for name in names])
    shown = "".join(line.split("  ")[0].strip() for line in printed(table))
    assert all(name in shown for name in names)
