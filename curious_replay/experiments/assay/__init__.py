"""The paper's tables and figures of the object-interaction assay."""
