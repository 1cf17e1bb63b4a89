"""The operations of the HTTP API, a module a noun."""
