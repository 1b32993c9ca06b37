"""`python -m benchmarks.paced BOOTSTRAP TOPIC RATE LINGER_MS`: produces RATE records a second (librdkafka, acks 1).

Prints a line when it begins, and when its input ends "P50 P99 LONGEST", in ms: how long the acknowledgements took.
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import Message, Producer


def main(bootstrap: str, topic: str, rate: float, linger_ms: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": linger_ms})
    waits: list[float] = []
    over = threading.Event()

    def until_told() -> None:
        sys.stdin.readline()
        over.set()

    def send() -> None:
        sent = time.perf_counter()

        def acknowledged(error: object, message: Message) -> None:
            if error is not None:
                raise RuntimeError(str(error))
            waits.append((time.perf_counter() - sent) * 1000)

        producer.produce(topic, bytes(100), on_delivery=acknowledged)

    send()
    producer.flush(30)
    waits.clear()  # the first one waits for connections and metadata
    threading.Thread(target=until_told, daemon=True).start()
    print("begun", flush=True)
    due = time.perf_counter()
    while not over.is_set():
        due += 1 / rate
        while (left := due - time.perf_counter()) > 0:
            producer.poll(left)
        send()
    producer.flush(30)
    waits.sort()
    print(waits[len(waits) // 2], waits[int(len(waits) * 0.99)], waits[-1])


main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
