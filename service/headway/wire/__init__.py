"""Protobuf messages between programs, their codec, and channels."""
