"""Queueing theory, and whether an objective is feasible."""
