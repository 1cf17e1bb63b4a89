"""Formulas of other autoscalers, replayed: ``headway conformance``."""
