"""Malformed files, made from good ones: what a reader must take or refuse, and never stumble over.

    PYTHONPATH=src:tests python -m fuzz --seed 0 --count 50000

Each file follows from the seed and its number alone; `--only 1234` makes and judges that one again, `--keep FOLDER`
writes what failed there.
"""
