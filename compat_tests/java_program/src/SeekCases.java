import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Finding a place in a partition. */
final class SeekCases {
    private SeekCases() {
    }

    private static long next(Consumer<byte[], byte[]> consumer) {
        return Broker.read(consumer, 1).get(0).offset();
    }

    @Case("seek to an offset, to the beginning, to the end")
    static void offsets(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 1000), "batch.size=500");
        try (Consumer<byte[], byte[]> consumer = broker.consumer("max.poll.records=1")) {
            consumer.assign(List.of(partition));
            for (long offset : new long[] {0, 999, 500, 501, 1}) {
                consumer.seek(partition, offset);
                Check.equal(offset, next(consumer), "offset after a seek");
                Check.equal(offset + 1, consumer.position(partition), "position after it");
            }
            consumer.seekToBeginning(List.of(partition));
            Check.equal(0L, next(consumer), "offset at the beginning");
            consumer.seekToEnd(List.of(partition));
            Check.equal(1000L, consumer.position(partition), "position at the end");
            broker.send(List.of(Records.record(topic, null, "one more")));
            Check.equal(1000L, next(consumer), "offset of what came after the end");
        }
    }

    @Case("seek to a time")
    static void times(Broker broker) throws Exception {
        String topic = broker.topic(2);
        TopicPartition partition = new TopicPartition(topic, 0);
        TopicPartition empty = new TopicPartition(topic, 1);
        broker.send(Records.numbered(topic, 1000), "batch.size=500");
        try (Consumer<byte[], byte[]> consumer = broker.consumer("max.poll.records=1")) {
            consumer.assign(List.of(partition));
            Map<Long, Long> expected = new HashMap<>();
            expected.put(0L, 0L);
            expected.put(Records.START, 0L);
            expected.put(Records.START + 1, 1L);
            expected.put(Records.START + 437_000, 437L);
            expected.put(Records.START + 437_500, 438L);
            expected.put(Records.START + 999_000, 999L);
            expected.put(Records.START + 999_001, null);
            for (Map.Entry<Long, Long> one : expected.entrySet()) {
                Map<TopicPartition, OffsetAndTimestamp> found =
                    consumer.offsetsForTimes(Map.of(partition, one.getKey(), empty, one.getKey()));
                OffsetAndTimestamp place = found.get(partition);
                Check.equal(one.getValue(), place == null ? null : place.offset(), "offset for time " + one.getKey());
                Check.equal(null, found.get(empty), "offset in an empty partition");
                if (place != null) {
                    Check.equal(Records.START + 1000 * place.offset(), place.timestamp(), "timestamp found");
                    consumer.seek(partition, place.offset());
                    Check.equal(place.timestamp(), Broker.read(consumer, 1).get(0).timestamp(), "timestamp read");
                }
            }
        }
    }

    @Case("a time inside a compressed batch")
    static void timesInBatch(Broker broker) throws Exception {
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            String topic = broker.topic(1);
            TopicPartition partition = new TopicPartition(topic, 0);
            broker.send(Records.numbered(topic, 100), "linger.ms=1000", "compression.type=" + codec);
            try (Consumer<byte[], byte[]> consumer = broker.consumer()) {
                OffsetAndTimestamp place = consumer.offsetsForTimes(Map.of(partition, Records.START + 41_001)).get(partition);
                Check.equal(42L, place.offset(), "offset in " + codec);
            }
        }
    }

    @Case("an offset out of range, without a reset")
    static void outOfRange(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 5));
        try (Consumer<byte[], byte[]> consumer = broker.consumer("auto.offset.reset=none")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 6);
            OffsetOutOfRangeException error =
                Check.fails(OffsetOutOfRangeException.class, () -> consumer.poll(Broker.PATIENCE));
            Check.equal(Map.of(partition, 6L), error.offsetOutOfRangePartitions(), "what is out of range");
        }
    }

    @Case("an offset out of range, with each reset")
    static void resets(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 4));
        long hourAgo = System.currentTimeMillis() - Duration.ofHours(1).toMillis();
        broker.send(List.of(new ProducerRecord<>(topic, 0, hourAgo, null, Records.bytes("an hour ago"))));
        Map<String, Long> expected = Map.of("earliest", 0L, "latest", 5L, "by_duration:PT2H", 4L);
        for (Map.Entry<String, Long> one : expected.entrySet()) {
            try (Consumer<byte[], byte[]> consumer = broker.consumer("auto.offset.reset=" + one.getKey())) {
                consumer.assign(List.of(partition));
                consumer.seek(partition, 99);
                for (long end = System.nanoTime() + Broker.PATIENCE.toNanos();
                        consumer.position(partition) == 99 && System.nanoTime() < end;) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                        Check.that(record.offset() >= one.getValue(), "first offset after the reset to " + one.getKey());
                        consumer.seek(partition, one.getValue());
                    }
                }
                Check.equal(one.getValue(), consumer.position(partition), "position after the reset to " + one.getKey());
            }
        }
    }

    @Case("an empty topic")
    static void emptyTopic(Broker broker) throws Exception {
        String topic = broker.topic(3);
        List<TopicPartition> all = Broker.partitions(topic, 3);
        try (Consumer<byte[], byte[]> consumer = broker.consumer()) {
            Map<TopicPartition, Long> zero = Map.of(all.get(0), 0L, all.get(1), 0L, all.get(2), 0L);
            Check.equal(zero, consumer.beginningOffsets(all), "beginning");
            Check.equal(zero, consumer.endOffsets(all), "end");
            consumer.assign(all);
            Check.that(consumer.poll(Duration.ofMillis(600)).isEmpty(), "no records");
            Check.equal(0L, consumer.position(all.get(1)), "position");
            Check.equal(Set.of(), consumer.paused(), "paused");
        }
    }
}
