"""What the source of an application says of its queues and brokers. It is read as text; nothing of it is run."""
