"""What is to be posted to receivers, written in the transaction that makes it so."""
