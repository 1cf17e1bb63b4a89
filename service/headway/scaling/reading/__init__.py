"""What is read of a pool before anything is asked for: its queues as one, how old its samples are."""
