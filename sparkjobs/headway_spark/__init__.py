"""Metrics of queues, computed by Spark Structured Streaming from the event log.

Knows the arithmetic of ``headway.scaling`` and pyspark, nothing else of the service: where rows go is handed in.
"""
