"""Ctrl-C at many moments of `oarlock train`.

    PYTHONPATH=src:tests python -m interrupts --seed 0 --count 100

Each time the process ends within two seconds of the signal, and what it leaves is a file of whole steps, which goes on.
"""
