"""The records of `__remote_log_metadata` (KIP-405): which segments of which partitions lie in remote storage."""
