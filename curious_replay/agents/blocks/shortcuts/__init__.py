"""Faster ways to the same numbers; each says what it gains."""
