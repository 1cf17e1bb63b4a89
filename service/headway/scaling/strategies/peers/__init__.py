"""Strategies of other autoscalers, for comparison."""
