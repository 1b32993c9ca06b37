"""kwire: a Kafka broker in Python."""

__version__ = "0.1.0"
