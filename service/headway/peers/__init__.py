"""Strategies of other autoscalers for comparison, found by their entry points, and ``headway conformance``."""
