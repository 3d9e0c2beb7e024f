"""Terms that every translation must hold: lists of them are read from files (`reading.py`), found
in a source (`find.py`), looked for in a translation (`check.py`) and put in where they are lacking
(`rewriting.py`).

Begin with `TermList` in `term_list.py`, the extension of the pipeline that does all of this. The
engine finds it by `tmnmt.registry` alone."""

from __future__ import annotations

from tmnmt.registry import register

register("extension", "terms", "tmnmt.terms.term_list:load_terms", successor="confidence")
