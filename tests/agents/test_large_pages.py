"""Large tensors lie in large pages, unless the user says otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHOICE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PROGRAM = """
from curious_replay import host
host.prepare()
import torch
large = torch.ones(16 << 20)
lines = open("/proc/self/smaps_rollup").read().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("AnonHugePages")))
"""

pytestmark = pytest.mark.skipif(
    not CHOICE.exists() or "[madvise]" not in CHOICE.read_text(),
    reason="this system does not leave large pages to its programs",
)


def large_pages(**more: str) -> int:
    """Kilobytes in large pages of a new process with a tensor of 64 MB."""
    names = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=names | more,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_large_tensors_lie_in_large_pages():
    assert large_pages() > 32_000


def test_the_users_own_choice_holds():
    assert large_pages(THP_MEM_ALLOC_ENABLE="0") < 32_000
