"""Hosts: what they reported, what they may run, what they are assigned."""
