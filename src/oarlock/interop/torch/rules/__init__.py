"""The rules: how each overload of ATen is written in a program. A file for each family; all files here are imported."""
