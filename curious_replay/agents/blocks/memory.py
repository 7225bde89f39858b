"""Keep the memory that an update frees, for the next one."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


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
