"""The commands of `curious`, one module each."""
