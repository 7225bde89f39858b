"""The paper's tables and figures, one file each: a grid of runs, a measure, and a claim to test."""
