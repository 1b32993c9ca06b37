"""Object stores: where tiered storage (KIP-405) keeps what it copied away from the local disk.

    object_store     what a store is: whole objects of bytes by key
    errors           what can go wrong with one, and whether trying again may help
    keys, parts      which texts are keys; reading what an object is made of
    opening          the store that the configuration asks for, tried
    directory        a store in a folder
    s3               a store in a bucket of S3
    s3_settings, s3_answers      what obstore is told, and what its errors mean
    memory, faults   a store in memory, for simulation, and what it does wrong on demand

Knows ports and configuration, and nothing of logs: what an object means is the business of those who put it there.
"""
