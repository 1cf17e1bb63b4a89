"""What is read of a pool before anything is asked for: what its evidence shows, computed once per evaluation."""
