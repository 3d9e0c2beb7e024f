"""Inline codes: what a text of a translator's file has in it beside its words."""
