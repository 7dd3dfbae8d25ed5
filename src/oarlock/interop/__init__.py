"""Import and export of models and weights in other formats."""
