"""What every client must be able to do, written once.

A client's folder derives its test classes from these suites and provides the fixture `driver` (and `admin`).
"""
