"""Java, as the tests and the benchmarks need it: jars by name from Maven, and Apache Kafka itself as a peer.

Nothing in `kwire/` imports this. `python -m jvm kafka streams connect spark s3 tiered` resolves the jars ahead of time.
"""
