"""Strategies on recorded workloads: scenarios × traces × strategies, compared with figures of others."""
