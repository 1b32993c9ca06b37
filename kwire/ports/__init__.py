"""The outside world as kwire sees it: time, randomness, worker threads and processes, the network and files.

Nothing else in kwire reads a clock, draws a random number, starts a thread or a process, opens a socket or a file. Each
port is a protocol class with a real implementation and one in memory, so that a whole cluster can run in one process on
virtual time from a seed.
"""
