"""Waiting for what other processes do."""

import time


def wait_for(true, seconds=120):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
