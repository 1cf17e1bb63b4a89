"""How workers end: what is kept of each end, what a worker leaves, and the jobs that an end has cut."""
