"""The stock command line tools of Apache Kafka against kwire."""
