"""A side stream of the pretended device that is as late as can be.

What is copied in it arrives when it is waited for and not before: until then tensors hold wrong
numbers. On a card it would usually have arrived long ago, and a missing wait would go unnoticed.
"""

from contextlib import contextmanager

from helpers.device.pretended import _Interception


class LateStream:
    """See `SideStream`."""

    def __init__(self):
        self.copies = []  # (where to, where from), in order
        self.done = 0
        self.used = []  # tensors that the stream which computes has been given

    @contextmanager
    def beside(self):
        device = _Interception.active
        with device:  # a thread knows nothing of the modes of another
            device.side.copies = self.copies
            try:
                yield
            finally:
                device.side.copies = None

    def mark(self):
        return len(self.copies)

    def wait(self, mark, tensors):
        for target, source in self.copies[self.done : mark]:
            target.copy_(source)
        self.done = max(self.done, mark)
        self.used += tensors
