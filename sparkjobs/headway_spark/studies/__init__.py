"""Work in bulk: history, back-tests, seasons and topology on the executors."""
