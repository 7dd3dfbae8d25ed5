"""A server under load, and its stop: every answer right, nothing lost, no error but ours, memory flat.

    PYTHONPATH=src:tests python -m serving_load --clients 64 --seconds 60
    PYTHONPATH=src:tests python -m serving_load.hostile --seed 0 --count 200

`clients.py` is who asks: most ask and compare, some send what is malformed, too large or slow, some go away. `http.py` is what they speak.
After the seconds the server is sent SIGTERM while they go on. `hostile.py` holds requests that are made to take memory and time.
"""
