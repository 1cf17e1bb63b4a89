"""What the agent reads of its machine: processes, capacity, users, GPUs, signals."""
