"""Processes that tests start: none outlives its test, whatever happens."""

import signal
import subprocess
from contextlib import contextmanager

PATIENCE = 300
"""Seconds that a process may take for what a test waits for."""


@contextmanager
def started(command, **options):
    """A process, which is asked to end with the block, and then made to."""
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # a sweep or a soak ends its own processes first
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
