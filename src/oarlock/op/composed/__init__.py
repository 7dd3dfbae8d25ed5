"""What is written with operators and is none itself."""
