"""Trying inputs, in a process of their own: a crash is counted, not suffered.

Each input is a valid set of files with one of them changed, made from nothing but the seed, the
target and a number: any of them can be tried again alone.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import stat
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from mutate_arrays import mutate_archive, mutate_tensors
from mutate_bytes import mutate_bytes
from mutate_json import mutate_json, mutate_lines
from targets import Target

import curious_replay

SECONDS = 5.0
"""Of computing that one input may take."""
MEMORY = 512 * 2**20
"""Bytes that reading may take beyond what the process has; no file here is larger than 3 MB."""
CODE = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class",
        "ctypes.dlopen", "os.fork", "os.forkpty"}  # fmt: skip
"""What must not happen while a file is read, as Python tells those who listen."""


PARTS = (str(Path(curious_replay.__file__).parent), sys.prefix, sys.base_prefix, "/proc/", "/sys/",
         "/dev/shm/pym-")  # fmt: skip
"""Where files are that any program opens."""


class HangError(BaseException):
    """An input took too long; no reader catches this."""


class Watch:
    """Listens to what Python does: code that is run, and files that are opened elsewhere."""

    def __init__(self) -> None:
        self.folder = ""
        self.seen: list[str] = []
        sys.addaudithook(self._hear)  # for good: there is no taking back

    def _hear(self, event: str, details: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        if event in CODE:
            self.seen.append(f"ran code: {event} {details!r:.80}")
        elif event == "open" and isinstance(details[0], str | bytes | os.PathLike):
            path = os.fsdecode(details[0])
            linked = Path(path).is_symlink() and not (details[2] or 0) & os.O_NOFOLLOW
            # A bare name lies in a folder that is open: one whose files are being removed.
            inside = "/" not in path or (path.startswith(self.folder) and ".." not in path)
            # Modules may be loaded at any time, and so may what comes with them.
            if linked or not (inside or "site-packages" in path or path.startswith(PARTS)
                              or path.endswith((".py", ".pyc", ".nbi", ".nbc"))):  # fmt: skip
                self.seen.append(f"opened a file elsewhere: {path}")


class Case:
    """The files of one target in one folder, which are changed and set right again."""

    def __init__(self, name: str, target: Target, folder: Path) -> None:
        self.name, self.target, self.folder = name, target, folder / "case"
        self.outside = folder / "outside"
        self.outside.write_bytes(b"{}")
        self.variants: list[dict[str, bytes]] = []
        for make in target.make:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            make(self.folder)
            paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
            self.variants.append({str(p.relative_to(self.folder)): p.read_bytes() for p in paths})
            target.read(self.folder)  # must work, and compiles what is to be compiled
        self.whole: dict[str, bytes] | None = None

    def change(self, seed: int, number: int) -> None:
        """Put the files of an input into the folder."""
        rng = random.Random(f"{seed} {self.name} {number}")
        variant = self.variants[rng.randrange(len(self.variants))]
        if self.whole is not variant or self.target.writes:
            shutil.rmtree(self.folder, ignore_errors=True)
            for name, data in variant.items():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(data)
            self.whole = variant
        names = [name for name in variant if variant[name] or rng.random() < 0.1]
        name = rng.choice(names)
        self.touched = [name]
        if rng.random() < 0.02:
            self._replace(self.folder / name, rng)
            return
        other = variant[rng.choice(names)]
        (self.folder / name).write_bytes(mutate(name, variant[name], rng, other))
        if self.target.repair and rng.random() < 0.9:
            self.touched = [*variant]
            with contextlib.suppress(Exception):  # what cannot be repaired is tried as it is
                self.target.repair(self.folder)

    def set_right(self) -> None:
        """Undo `change`."""
        assert self.whole is not None
        for name in self.touched:
            path = self.folder / name
            if path.is_symlink() or not stat.S_ISREG(path.lstat().st_mode if path.exists() else 0):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else (
                    path.unlink(missing_ok=True)
                )
            if not path.exists() or path.read_bytes() != self.whole[name]:
                path.write_bytes(self.whole[name])

    def _replace(self, path: Path, rng: random.Random) -> None:
        """Something else in place of a file, or in place of the folder it is in."""
        kind = rng.randrange(6)
        if kind == 5 and path.parent != self.folder:
            elsewhere = self.outside.with_name("folder")
            shutil.rmtree(elsewhere, ignore_errors=True)
            path.parent.rename(elsewhere)
            path.parent.symlink_to(elsewhere)
            self.whole = None
            return
        path.unlink()
        match kind:
            case 0:
                path.symlink_to(self.outside)
            case 1:
                path.symlink_to("/dev/zero")
            case 2:
                path.mkdir()
            case 3:
                os.mkfifo(path)
            case 4:
                path.write_bytes(b"")


def mutate(name: str, data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Change a file as its kind allows, or its bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(data, rng, other)
    match Path(name).suffix:
        case ".json":
            return mutate_json(json.loads(data), rng)
        case ".jsonl":
            return mutate_lines(data, rng)
        case ".npz":
            return mutate_archive(data, rng)
        case ".safetensors":
            return mutate_tensors(data, rng)
    return mutate_bytes(data, rng, other)


def try_input(case: Case, watch: Watch, seed: int, number: int) -> tuple[str, str]:
    """Outcome ("read", "refused" or what is wrong) of one input, and what is to be said of it."""
    case.change(seed, number)
    watch.seen.clear()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    outcome, said = "read", ""
    try:
        watch.folder = str(case.folder)
        case.target.read(case.folder)
    except ValueError as error:
        outcome, said = "refused", str(error)
        # An error of ours says which file is meant; one of a library does not know.
        if str(case.folder) not in said:
            outcome, said = "nameless error", traceback.format_exc(limit=-4)
    except HangError:
        outcome, said = "hang", traceback.format_exc(limit=-4)
    except Exception as error:
        outcome, said = type(error).__name__, traceback.format_exc(limit=-4)
    finally:
        watch.folder = ""
        signal.setitimer(signal.ITIMER_PROF, 0)
    if watch.seen:
        outcome, said = watch.seen[0].partition(":")[0], watch.seen[0]
    if case.whole is not None and not case.target.writes:
        case.set_right()
    return outcome, said


def limit_process() -> None:
    """Let hangs and greed be errors in this process."""

    def hang(*_: Any) -> None:
        raise HangError

    signal.signal(signal.SIGPROF, hang)
    with Path("/proc/self/statm").open() as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
