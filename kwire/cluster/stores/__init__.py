"""Metadata stores: where the cluster's metadata is kept and how brokers come to the same image."""
