"""kwire and Apache Kafka side by side: the same load, the same machine, one run."""
