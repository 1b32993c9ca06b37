"""What consumers tell each other through a classic group (JoinGroup and SyncGroup, protocol type "consumer").

A coordinator hands it on as bytes, and looks into a subscription only for its topics.
"""
