"""The law of rows, tried on every operator; `python -m row_law` says how it is called."""
