"""How workers end: asked, killed, noted; what a worker leaves, and the jobs that an end has cut."""
