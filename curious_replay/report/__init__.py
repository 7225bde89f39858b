"""The report: one page from run folders, to be read in a browser without a network."""
