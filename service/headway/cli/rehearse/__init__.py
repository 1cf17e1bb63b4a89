"""Rehearsals on a virtual clock: ``simulate``, ``plan``, and the options that describe them."""
