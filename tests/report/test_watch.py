"""`curious report --watch` keeps a page up to date while runs go on."""

import pytest
from helpers.browser import browsing
from helpers.folders import counters, write_run

from curious_replay import cli
from curious_replay.analysis import load
from curious_replay.commands import report as command
from curious_replay.report.page import report


def goes_on(folder, step):
    """A run that has come to a step, of 100."""
    lines = [{**counters(t), "mode": "train", "return": float(t)} for t in range(10, step + 1, 10)]
    if folder.exists():
        write = write_run(folder.with_name(f"new-{folder.name}"), episodes=lines, steps=100)
        (write / "episodes.jsonl").replace(folder / "episodes.jsonl")
        for each in write.iterdir():
            each.unlink()
        write.rmdir()
    else:
        write_run(folder, episodes=lines, steps=100)


def watch(tmp_path, monkeypatch, events):
    """Watch while events happen, one in each pause; returns the pages seen and the exit code."""
    out, pages = tmp_path / "page.html", []

    def sleep(seconds):
        assert seconds == 5
        pages.append(out.read_text() if out.exists() else None)
        event = next(events)
        if event is not None:
            event()

    monkeypatch.setattr(command.time, "sleep", sleep)
    options = ["--out", str(out), "--watch", "--every", "5"]
    code = cli.main(["report", str(tmp_path / "runs"), *options])
    return [*pages, out.read_text()], code


def test_the_page_is_renewed_until_all_runs_are_finished(tmp_path, monkeypatch, capsys):
    runs = tmp_path / "runs"
    runs.mkdir()
    events = iter([
        lambda: goes_on(runs / "a", 50),
        None,
        lambda: goes_on(runs / "a", 80),
        lambda: goes_on(runs / "a", 100),
    ])  # fmt: skip
    written = []
    monkeypatch.setattr(command, "report", lambda *a, **k: written.append(k) or report(*a, **k))
    pages, code = watch(tmp_path, monkeypatch, events)
    assert code == 0
    assert pages[0] is None  # there was no run yet
    assert [each["renew"] for each in written] == [5, 5, None]  # and nothing new in one pause
    assert '<meta http-equiv="refresh" content="5">' in pages[1]
    assert pages[1] == pages[2] != pages[3]
    assert "return at frame 80" in pages[3]
    assert "refresh" not in pages[-1]
    said = capsys.readouterr().out
    assert "no run could be read yet" in said
    assert "1 runs, 1 not finished, 50 steps" in said
    assert "1 runs, 0 not finished, 100 steps" in said


def test_ctrl_c_leaves_a_page_that_is_not_loaded_again(tmp_path, monkeypatch):
    goes_on(tmp_path / "runs/a", 50)

    def interrupt():
        raise KeyboardInterrupt

    pages, code = watch(tmp_path, monkeypatch, iter([interrupt]))
    assert code == 0
    assert "refresh" in pages[0]
    assert "refresh" not in pages[1]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["page.html"]


@pytest.mark.parametrize("seconds", ["0", "-3", "nan", "1e9"])
def test_how_often_has_bounds(tmp_path, capsys, seconds):
    write_run(tmp_path / "a")
    assert cli.main(["report", str(tmp_path), "--watch", "--every", seconds]) == 2
    assert "--every must be from 1 to 86400 seconds" in capsys.readouterr().err


@pytest.fixture
def browser(tmp_path):
    yield from browsing(tmp_path / "browser")


def test_a_browser_shows_the_new_page_and_stays_where_it_was(browser, tmp_path):
    out = tmp_path / "page.html"
    goes_on(tmp_path / "runs/a", 50)
    report(load.load_runs([tmp_path / "runs"]), renew=1).save(out)
    browser.open(out)
    browser.run("window.scrollTo(0, 400)")
    goes_on(tmp_path / "runs/a", 80)
    report(load.load_runs([tmp_path / "runs"])).save(out)
    browser.wait_for("document.body.textContent.includes('return at frame 80')")
    browser.wait_for("window.scrollY === 400")
