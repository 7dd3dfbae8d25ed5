"""Program -> Program, one idea per file."""
