"""Bodies of requests and responses, as Pydantic models around the core's values."""
