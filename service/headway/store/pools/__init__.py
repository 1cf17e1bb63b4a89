"""Pools: profiles, overrides, decisions, and what an evaluation reads and writes."""
