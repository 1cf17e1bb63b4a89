"""Reasons to change a count of workers: limits, stabilization, budgets, fallback, activation."""
