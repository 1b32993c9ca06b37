"""Kafka Connect: lines go from a file to a topic and on to another file, by workers that are stopped and killed."""
