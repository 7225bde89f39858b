"""Try to break every reader of files: `make fuzz`, or

python tests/fuzz/fuzz.py --inputs 100000 --target replay --seed 1 --out out/fuzz

Files that the package wrote are changed at random and read again. They may be read, or refused by
an error that names the file; anything else is a defect: another error, a crash, a hang, code that
is run, memory beyond what the file can hold, a file elsewhere that is opened.
"""

import argparse
import json
import mmap
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from targets import TARGETS
from worker import Case, Watch, limit_process, try_input

PATIENCE = 120.0
"""Seconds without a new input after which a process is taken to wait for ever."""
ALLOWED = ("read", "refused")
SHOWN = 5
"""Inputs of each defect that are kept."""


def fuzz(name: str, seed: int, first: int, count: int) -> tuple[Counter[str], list[dict[str, str]]]:
    """Try inputs `first` to `first + count` of a target; outcomes, and defects."""
    outcomes: Counter[str] = Counter()
    defects: list[dict[str, str]] = []
    at, end = first, first + count
    while at < end:
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory()) as folder:
            for number, outcome, said in _forked(name, seed, at, end, Path(folder)):
                at = number + 1
                outcomes[outcome] += 1
                if outcome not in ALLOWED and outcomes[outcome] <= SHOWN:
                    defects.append({"input": str(number), "outcome": outcome, "said": said})
    return outcomes, defects


def _memory() -> str | None:
    """A folder in memory, if there is one: files are written by the thousand."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _forked(
    name: str, seed: int, at: int, end: int, folder: Path
) -> Iterator[tuple[int, str, str]]:
    """Outcomes from a process of its own, until it is done or dead."""
    shared = mmap.mmap(-1, 8)  # the input that is being tried
    shared[:] = struct.pack("<q", at)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _work(name, seed, at, end, folder, shared, write)
    os.close(write)
    last = at - 1
    with os.fdopen(read, "rb", buffering=0) as pipe:
        for line in _lines(pipe, child):
            last, outcome, said = json.loads(line)
            yield last, outcome, said
    _, status = os.waitpid(child, 0)
    (reached,) = struct.unpack("<q", shared[:])
    if status != 0 and reached < end:
        yield from ((number, "refused", "") for number in range(last + 1, reached))
        dead = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        kind = "hang" if dead == signal.SIGKILL else f"crash by signal {dead}"
        yield reached, kind, f"the process ended with status {status}"


def _lines(pipe, child: int) -> Iterator[bytes]:
    """Lines that the process writes; it is killed if it is silent for too long."""
    rest = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], PATIENCE)
        if not ready:
            os.kill(child, signal.SIGKILL)
            return
        data = pipe.read(2**16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from whole


def _work(name, seed, at, end, folder, shared, write) -> None:
    """Try inputs and write their outcomes; never returns."""
    code = 1
    try:
        case, watch = Case(name, TARGETS[name], folder), Watch()
        limit_process()
        with os.fdopen(write, "wb", buffering=0) as out:
            for number in range(at, end):
                shared[:] = struct.pack("<q", number)
                outcome, said = try_input(case, watch, seed, number)
                kept = "" if outcome in ALLOWED else said[-2000:]
                out.write(json.dumps([number, outcome, kept]).encode() + b"\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> int:
    """Fuzz all targets, or some; 1 if a defect was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0, help="other ones give other inputs")
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=[*TARGETS])
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--out", type=Path, help="folder for fuzz.json: counts, and defects")
    options = parser.parse_args()
    shares = {name: TARGETS[name].share for name in options.target}
    found: dict[str, dict[str, int]] = {}
    defects: dict[str, Any] = {}
    for name, share in shares.items():
        count = max(1, round(options.inputs * share / sum(shares.values())))
        start = _seconds()
        outcomes, wrong = fuzz(name, options.seed, options.first, count)
        seconds = _seconds() - start
        found[name] = {"inputs": count, "per_second": round(count / seconds), **outcomes}
        print(f"{name:13} {count / seconds:6.0f}/s  {dict(outcomes)}", flush=True)
        for each in wrong:
            print(f"  input {each['input']}: {each['outcome']}\n{each['said']}", flush=True)
        if wrong:
            defects[name] = wrong
        if options.out:
            _write(options.out, found, defects)
    total = sum(each["inputs"] for each in found.values())
    print(f"{total} inputs, {'defects in ' + ', '.join(defects) if defects else 'no defect'}")
    return 1 if defects else 0


def _write(folder: Path, found: dict[str, dict[str, int]], defects: dict[str, Any]) -> None:
    """Keep what is known so far; hours may lie between two targets."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "command": " ".join(["python", *sys.argv]),
        "commit": _commit(),
        "until": datetime.now(UTC).isoformat(timespec="seconds"),
        "inputs": sum(each["inputs"] for each in found.values()),
        "targets": found,
        "defects": defects,
    }
    (folder / "fuzz.json").write_text(json.dumps(content, indent=2) + "\n")


def _seconds() -> float:
    """Computing time of the processes that have ended: other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
