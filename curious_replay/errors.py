"""The error for what a user did wrong, which needs no traceback."""


class UsageError(ValueError):
    """Says what was asked for, why that cannot be done, and what would be right.

    The command line prints its message and ends with code 2. Any other error is a mistake of the
    code, of this package or of the user's own, and keeps its traceback.
    """
