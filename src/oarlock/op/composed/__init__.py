"""Functions that are written with operators and are none themselves."""
