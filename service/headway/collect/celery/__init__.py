"""Celery on Redis, Valkey and RabbitMQ, read without changing anything. Celery itself is not needed."""
