"""What queues and pools did over a range of time, for people to read."""
