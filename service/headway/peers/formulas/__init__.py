"""Formulas of other autoscalers, one short function each, held to what their code was recorded to answer.

A strategy that says it works like its maker's calls these; that they give the recorded numbers does not mean that they
are good. `headway conformance` replays the recordings. Their counts are of workers with one slot, which are slots.
"""
