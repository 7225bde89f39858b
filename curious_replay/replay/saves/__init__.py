"""Saved buffers: writing, checking and reading them."""
