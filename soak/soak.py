"""Hard use: runs are killed at random moments and resumed, and must end as if nothing had been.

    python soak/soak.py --minutes 60 --out out/soak

In each round one run is left alone and the same one is killed again and again. After every kill,
and at the end, what both recorded is compared; see compare.py. Once for each agent a run is left
alive for longer, and its memory and open files are watched. soak.json in the folder has all counts
so far, also after Ctrl-C. Runs that differ are kept. The exit code is 1 if anything was wrong.

    python soak/soak.py --markdown out/soak/soak.json    prints what docs/reliability.md shows of it
"""

import argparse
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import compare
from cases import Case, cases
from counts import Counts
from notes import ACTIVITIES
from victim import KILL, PATIENCE, WAYS, Victim, uninterrupted

from curious_replay.run.settings.agents import AGENTS

MOST_KILLS = 12  # of one run
# From how many entries into an activity the one to be killed in is drawn, so that a run is met
# several times on its way.
ENTRIES = {"collecting": 20, "updating": 8, "writing logs": 6, "saving": 3, "evaluating": 2}
ENDED = {KILL: {-signal.SIGKILL}}
ENDED |= {way: {0, 128 + signal.SIGTERM, -signal.SIGTERM, -signal.SIGKILL} for way in WAYS[1:]}
"""Exit codes after each way to be killed: SIGTERM may come too early to be heard, or too late."""
LOOKS_A_SECOND = 5
WATCHED = 400  # steps at least: the buffer, and a second file of steps, are full in a third of them


class Soak:
    """One soak in progress."""

    def __init__(self, out: Path, seed: int) -> None:
        self.out = out
        self.work = out / "runs"
        self.rng = random.Random(seed)
        self.counts = Counts(seed)
        self.began = time.monotonic()
        self.victim: Victim | None = None
        """The process that was started last."""

    def round(self, case: Case) -> None:
        """Run once undisturbed and once killed, and compare."""
        whole, killed = self.work / "whole", self.work / "killed"
        self._clear()
        if not self._expect(self._start(case, whole), case, {0}):
            return
        wrong = self._kill_on_the_way(case, whole, killed)
        last = self._start(case, killed)
        if self._expect(last, case, {0}):
            wrong += compare.at_end(whole, killed)
            self.counts.compared(case, compare.lines(whole))
        self._settle(case, wrong)

    def watch(self, case: Case) -> None:
        """Look at the size of a run until it is complete."""
        self._clear()
        folder = self.work / "long"
        victim = self._start(case, folder)
        seen = []
        deadline = time.monotonic() + 5 * PATIENCE
        while victim.alive() and time.monotonic() < deadline:
            size = victim.size()
            if size is not None:
                seen.append((compare.step(folder), size))
            time.sleep(1 / LOOKS_A_SECOND)
        if self._expect(victim, case, {0}):
            self.counts.life(case, seen)
        self._settle(case, [])

    def _kill_on_the_way(self, case: Case, whole: Path, killed: Path) -> list[str]:
        """Start, kill, look, again; returns what was wrong."""
        wrong: list[str] = []
        for _ in range(MOST_KILLS):
            aim, way = self.rng.choice(ACTIVITIES), self.rng.choice(WAYS)
            passes = self.rng.randrange(ENTRIES.get(aim, 1))
            victim = self._start(case, killed, aim, passes)
            if not victim.wait_until_stopped():
                self._expect(victim, case, {0})
                break
            activity = victim.kill(way, self.rng)
            if activity is None:
                self._expect(victim, case, {0})
                break
            self.counts.kill(case, activity, way)
            self._expect(victim, case, ENDED[way])
            wrong += compare.after_kill(whole, killed)
            self.note()
        return wrong

    def _start(self, case: Case, folder: Path, aim: str | None = None, passes: int = 0) -> Victim:
        self.counts.starts += 1
        output, trace = self.work / f"{folder.name}.txt", self.work / "trace"
        with uninterrupted():  # a process that nobody knew of would stop itself, and stay for ever
            self.victim = Victim(case.arguments(folder), output, trace, aim, passes)
        return self.victim

    def _expect(self, victim: Victim, case: Case, codes: set[int]) -> bool:
        """Wait for the end of a process, which must be one of these."""
        code = victim.end()
        wrong = victim.orphans()
        if code not in codes:
            wrong.append(f"ended with exit code {code}: {victim.last_words()}")
        self.counts.complain(case, wrong)
        return code in codes

    def _settle(self, case: Case, wrong: list[str]) -> None:
        """Keep runs that differ."""
        self.counts.complain(case, wrong)
        if wrong:
            kept = self.out / f"differs-{len(self.counts.wrong)}"
            shutil.copytree(self.work, kept)
            print(f"kept in {kept}:", *wrong, sep="\n  ", file=sys.stderr)
        self.note()

    def _clear(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def note(self) -> None:
        """Write the counts so far."""
        self.counts.minutes = (time.monotonic() - self.began) / 60
        self.counts.write(self.out)


def main() -> int:
    """Soak for the time given; 1 if something was wrong, 130 if it was interrupted."""
    options = _options()
    if options.markdown:
        print(Counts.read(options.markdown).markdown())
        return 0
    # A shell lets what it begins in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options.out.mkdir(parents=True, exist_ok=True)
    soak = Soak(options.out, options.seed)
    interrupted = False
    try:
        for number, case in enumerate(cases(options.agents, soak.rng)):
            minutes = (time.monotonic() - soak.began) / 60
            if minutes >= options.minutes or number == options.rounds:
                break
            print(f"{minutes:5.1f} min  {case}", flush=True)
            if number < len(options.agents) and options.watch:
                soak.watch(case.longer(options.watch))
            soak.round(case)
        soak.counts.finished = True
    except KeyboardInterrupt:
        interrupted = True
        if soak.victim is not None:
            soak.victim.destroy()
    soak.note()
    print("\n" + soak.counts.plain())
    if interrupted:
        return 130
    shutil.rmtree(soak.work, ignore_errors=True)
    return 1 if soak.counts.wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no round after these")
    parser.add_argument("--rounds", type=int, help="end after so many rounds, whatever the time")
    parser.add_argument("--seed", type=int, default=0, help="of cases and moments")
    parser.add_argument("--agents", nargs="+", default=[*AGENTS], choices=[*AGENTS])
    parser.add_argument(
        "--watch", type=int, default=600,
        help="steps of a run whose memory and open files are watched, once for each agent; 0: none",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("out/soak"))
    parser.add_argument(
        "--markdown", type=Path, metavar="SOAK.JSON", help="print the tables of a soak and end"
    )
    options = parser.parse_args()
    if 0 < options.watch < WATCHED:
        parser.error(
            f"--watch must be 0 or at least {WATCHED}, so that the buffer is full in time, got "
            f"{options.watch}"
        )
    return options


if __name__ == "__main__":
    sys.exit(main())
