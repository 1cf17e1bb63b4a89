"""All the thinking: arithmetic on values. No clock, no I/O, no logging, no chance."""
