"""Which host runs which worker."""
