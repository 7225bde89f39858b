"""How others reach what a buffer holds: step by step, ahead of time, newest first, as tensors."""
