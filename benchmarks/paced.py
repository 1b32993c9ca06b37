"""`python -m benchmarks.paced BOOTSTRAP TOPIC RATE LINGER_MS`: produces RATE records a second (librdkafka, acks 1).

The value of a record is the time at which it was produced, in µs of the epoch, in 100 digits; that of the first one,
which waits for connections and metadata and does not count, is 0. Prints a line when it begins, and when its input ends
"COUNT P50 P99 P99.9 LONGEST", in ms: how long the acknowledgements took. Fails where a record was not acknowledged.
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import Message, Producer

from benchmarks.quantile import quantile


def main(bootstrap: str, topic: str, rate: float, linger_ms: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": linger_ms})
    waits: list[float] = []
    failures: list[str] = []
    over = threading.Event()

    def until_told() -> None:
        sys.stdin.readline()
        over.set()

    def acknowledged(error: object, message: Message) -> None:
        if error is None:
            waits.append(message.latency() * 1000)
        else:
            failures.append(str(error))

    def send(produced_us: int) -> None:
        producer.produce(topic, b"%0100d" % produced_us, on_delivery=acknowledged)

    def poll() -> None:
        """A latency counts until it is asked for: so who asks must do nothing but wait for it."""
        while not over.is_set():
            producer.poll(0.1)

    send(0)
    producer.flush(30)
    if not waits:
        sys.exit(f"the first record was not acknowledged within 30 s: {failures}")
    waits.clear()
    threading.Thread(target=until_told, daemon=True).start()
    polling = threading.Thread(target=poll)
    polling.start()
    print("begun", flush=True)
    due = time.perf_counter()
    while True:
        due += 1 / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        send(time.time_ns() // 1000)
        if over.is_set():
            break
    polling.join()
    if left := producer.flush(30):
        failures.append(f"{left} records were not acknowledged within 30 s")
    if failures:
        sys.exit(f"{len(failures)} failures: {failures[0]}")
    waits.sort()
    print(len(waits), *(quantile(waits, share) for share in (0.5, 0.99, 0.999)), waits[-1])


main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
