"""A small Kafka client for Trio, on the broker's own codec.

    async with Client(TcpTransport(), parse_bootstrap("localhost:9092")) as client:
        producer = Producer(client)
        await producer.send("orders", value=b"one", key=b"k")
        await producer.flush()

    connection   one broker: pipelined calls, version negotiation, time-outs
    client       the cluster: bootstrap, metadata, the leader of each partition, retries until a deadline
    producer, consumer, offsets, admin   what to ask of it

The replica fetcher, the command line and whatever else in kwire talks to a broker use it; it speaks to any Kafka
broker since 2.1, in the highest version of each API that both know.
"""
