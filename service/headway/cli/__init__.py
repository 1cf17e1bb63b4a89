"""Every command; the only package that reads the environment and builds real parts."""
