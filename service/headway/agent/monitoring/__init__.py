"""What the agent measures of its host and workers: activity, resources, costs."""
