"""What stands in the lists of Celery's queues in Redis, read message by message."""
