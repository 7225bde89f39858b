"""Makes this process one of a system without POSIX locks, memory advice and the like.

It is imported before anything of the package: `python -c "import without_posix; ..."`, or
`pytest -p without_posix`, which then leaves out what needs a folder.
"""

import mmap
import os
import shutil
import sys
from types import SimpleNamespace

import pytest

sys.modules["fcntl"] = sys.modules["resource"] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "posix_fallocate", "pread", "pwrite"):
    delattr(os, name)
for name in [name for name in vars(mmap) if name.startswith("MADV_")]:
    delattr(mmap, name)
shutil._use_fd_functions = False  # it opens folders where it can
_open = os.open


def _open_no_folder(path, *args, **kwargs):
    if os.path.isdir(path):  # noqa: PTH112  # pathlib is what calls this
        raise PermissionError(13, "Permission denied", str(path))
    return _open(path, *args, **kwargs)


os.open = _open_no_folder

from curious_replay import durable  # noqa: E402
from curious_replay.replay import scratch, storage  # noqa: E402

# Only what these modules see: other libraries ask for the platform too.
for module in (durable, scratch, storage):
    module.sys = SimpleNamespace(platform="win32")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test at the point where it is told that it cannot have a folder."""
    try:
        return (yield)
    except Exception as error:  # also that of a test which expects another message
        if "POSIX file locks" in str(error):
            pytest.skip("needs a buffer in a folder")
        raise
