"""Spark's Kafka source and sink, `format("kafka")`, in batches and in streams."""
