"""The worker layouts of known applications, run with jobs that sleep."""
