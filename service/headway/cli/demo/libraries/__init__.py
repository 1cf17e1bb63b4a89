"""The queue libraries that a demo can play: each puts jobs into its broker, and has workers that note what they do."""
