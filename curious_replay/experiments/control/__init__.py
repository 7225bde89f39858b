"""The paper's tables and figures of control tasks, and a toy of ours."""
