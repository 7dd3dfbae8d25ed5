"""The rules that translate ATen overloads, one file per family. All files in this folder are imported."""
