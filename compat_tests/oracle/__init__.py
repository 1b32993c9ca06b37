"""kwire and Apache Kafka side by side: both get the same requests, and their responses are compared field by field."""
