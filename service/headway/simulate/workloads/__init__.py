"""Jobs to rehearse with: drawn from a shape and a seed, or named loads."""
