"""Queues of RabbitMQ: counted, and never consumed, declared or bound."""
