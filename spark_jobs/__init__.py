"""PySpark pipelines over Kafka topics; each module is a program for `spark-submit` or `python -m`."""
