"""``headway demo``: real jobs, real workers, and the report of what became of them."""
