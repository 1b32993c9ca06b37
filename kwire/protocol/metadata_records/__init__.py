"""What Apache Kafka's controllers keep in __cluster_metadata (KRaft), as far as kwire takes it over or names it.

    message = decode_record(record.value)        None for a type that says nothing that matters elsewhere

A record has no key. Its value begins with three unsigned varints: the frame's version, the record's type, its version.
"""
