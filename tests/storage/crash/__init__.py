"""Logs on a simulated disk, killed at any system call and robbed of their power, against lists of records."""
