"""The paper's tables and figures of Crafter."""
