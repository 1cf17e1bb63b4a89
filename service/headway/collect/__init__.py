"""What brokers hold, read without changing it and without a word to the program that uses them."""
