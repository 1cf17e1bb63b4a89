"""Command lines of workers: which library each starts, and what its options mean."""
