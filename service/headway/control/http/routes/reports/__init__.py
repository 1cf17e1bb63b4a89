"""What queues and pools did over a range of time."""
