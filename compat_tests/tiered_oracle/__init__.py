"""kwire and Apache Kafka with tiered storage, asked the same things."""
