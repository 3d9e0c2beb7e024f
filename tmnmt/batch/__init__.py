"""Whole files at a time: how much work there is, the memory's translations without a model, and
files filled with translations."""
