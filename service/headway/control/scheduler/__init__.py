"""The evaluation loop: what it reads and caches, how it decides, and who leads."""
