"""What an operator does about workers: replace those of a pool, kill one."""
