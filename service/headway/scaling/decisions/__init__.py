"""Decisions as values: when one is reusable, when one is stored, and how."""
