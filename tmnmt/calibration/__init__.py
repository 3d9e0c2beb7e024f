"""Chooses the numbers by which nearest positions of a memory are read, with segments that are held
out of this memory.

`held_out.py` chooses the segments, `fitting.py` finds numbers that make their references likely,
and `translation.py` translates them with each of these. `tmnmt.eval.calibrate` brings the three
together. The engine does not know of this package."""
