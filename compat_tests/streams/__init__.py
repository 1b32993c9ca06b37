"""A Kafka Streams application that counts a book's words, killed, restarted and robbed of its local state."""
