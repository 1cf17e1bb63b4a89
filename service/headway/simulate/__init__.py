"""Workloads, and what they would have cost otherwise. Imports ``scaling`` and the standard library only."""
