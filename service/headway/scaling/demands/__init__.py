"""Reasons to want workers: deadlines of waiting jobs, safety stock, rhythms."""
