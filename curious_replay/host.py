"""What the command line changes in the process it runs in; importing the package changes nothing.

`prepare` is called by `curious` and by the processes of a sweep. A program of your own that trains
with this package may call it too, before it imports torch.
"""

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
COMPILED = Path(__file__).parent / "replay"


def prepare() -> None:
    """Let updates be fast, and what is compiled be up to date."""
    # Large tensors in pages of 2 MB, where Linux has them: an update walks through gigabytes, and
    # finding their 4 KB pages takes time. PyTorch reads this when it makes its first tensor.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    keep_freed_memory()
    forget_stale_results(COMPILED)


def keep_freed_memory() -> bool:
    """Tell the C library not to return freed blocks to the system; False where it cannot.

    An update allocates and frees the same gigabyte each time. By default large blocks go back to
    the system at once, and every update pays for getting zeroed pages again: a third of its time.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def forget_stale_results(folder: Path) -> None:
    """Remove kept results that are older than any source file of `folder`.

    Numba renews the result of a function when the file of that function changes, but not when it
    calls one of another file, and that one changes. Installing the package writes all files anew,
    so this matters in a checkout that is edited.
    """
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for kept in (folder / "__pycache__").glob("*.nb[ic]"):
        with contextlib.suppress(OSError):  # read-only, or removed by another process just now
            if kept.stat().st_mtime < newest:
                kept.unlink()
