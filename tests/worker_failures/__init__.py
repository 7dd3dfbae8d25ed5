"""Kill and stop workers of a training job at random steps and inside saves; the job goes on by itself, to the bits of an unbroken one.

    PYTHONPATH=src:tests python -m worker_failures --seed 0 --kills 20 --stops 5
    PYTHONPATH=src:tests python -m worker_failures --kills 4 --stops 0 --workers 3 --shard-optimizer

Each failure is a job of its own: `oarlock train --workers N` in a new folder. A job that stands still for two minutes, ends otherwise, or
leaves a process behind, has failed too. A stop takes about a minute: half of it until the others notice, half until
torchrun ends by force what does not answer.
"""
