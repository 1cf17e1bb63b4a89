"""What rehearsals are compared for: tuning, tick phases, separate queues, other autoscalers."""
