"""Many environments at once, in processes that may crash or hang."""
