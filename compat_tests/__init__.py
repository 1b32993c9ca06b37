"""Stock Kafka clients and tools against a running broker: one folder a client.

`pytest compat_tests` starts kwire. `pytest compat_tests --against HOST:PORT` runs the same tests against another
broker; against Apache Kafka that shows that the tests themselves are right. Tests that start, stop or kill their broker
skip then.
"""
