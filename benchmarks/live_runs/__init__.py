"""Real runs of a whole `headway up`, measured from outside, and rehearsals of the same jobs beside them."""
