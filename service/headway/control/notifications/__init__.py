"""Notifications of incidents, posted to the receivers that this machine's operator names."""
