"""The control plane: ingest, scheduler, agents, and the HTTP and gRPC servers."""
