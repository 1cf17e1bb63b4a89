"""When something that is wrong becomes an incident, and when that ends."""
