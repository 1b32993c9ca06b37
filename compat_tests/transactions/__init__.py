"""Transactions by stock clients: what they commit, abort and leave behind, and who gets to see it."""
