"""Rehearsal: workloads, a virtual clock and the core. Imports ``scaling`` and the standard library only."""

from headway.simulate.controller import Controller, Observation

__all__ = ["Controller", "Observation"]
