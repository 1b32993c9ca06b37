"""Tests of the pipelines, each run by spark-submit against a broker of its own."""
