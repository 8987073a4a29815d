"""Benchmarks that anyone can repeat: ``python -m benchmarks`` (``make bench``), and ``python -m benchmarks.check``.

Inputs are seeded and proved correct before anything is timed (``inputs.py``, ``oracle.py``). Every comparison is interleaved
in one run and told as a ratio with its spread (``timing.py``); the yardstick, called the floor, is ``orjson.loads`` of each
event's payload, alone. Results go to ``docs/benchmarks/``: ``results.json``, charts, and a page that says what they don't.
"""
