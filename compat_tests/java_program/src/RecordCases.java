import java.util.Collections;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.record.TimestampType;

/** What is in a record comes back as it was sent. */
final class RecordCases {
    private RecordCases() {
    }

    @Case("every kind of record, uncompressed")
    static void none(Broker broker) throws Exception {
        everyKind(broker, "none");
    }

    @Case("every kind of record, in gzip")
    static void gzip(Broker broker) throws Exception {
        everyKind(broker, "gzip");
    }

    @Case("every kind of record, in snappy")
    static void snappy(Broker broker) throws Exception {
        everyKind(broker, "snappy");
    }

    @Case("every kind of record, in lz4")
    static void lz4(Broker broker) throws Exception {
        everyKind(broker, "lz4");
    }

    @Case("every kind of record, in zstd")
    static void zstd(Broker broker) throws Exception {
        everyKind(broker, "zstd");
    }

    private static void everyKind(Broker broker, String codec) throws Exception {
        String topic = broker.topic(1);
        List<ProducerRecord<byte[], byte[]>> records = Records.every(topic);
        List<RecordMetadata> sent = broker.send(records, "compression.type=" + codec, "linger.ms=100");
        for (int i = 0; i < sent.size(); i++) {
            Check.equal((long) i, sent.get(i).offset(), "offset told to the producer");
            Check.equal(records.get(i).timestamp(), sent.get(i).timestamp(), "timestamp told to the producer");
        }
        List<ConsumerRecord<byte[], byte[]>> got = broker.read(topic, records.size());
        Records.same(records, got);
        Check.equal(TimestampType.CREATE_TIME, got.get(0).timestampType(), "timestamp type");
        Check.equal(0, got.get(0).leaderEpoch().get(), "leader epoch");
    }

    @Case("a topic that compresses anew what it is sent")
    static void recompression(Broker broker) throws Exception {
        for (String target : List.of("uncompressed", "gzip", "snappy", "lz4", "zstd")) {
            String topic = broker.topic(1, "compression.type=" + target);
            List<ProducerRecord<byte[], byte[]>> records = Records.every(topic);
            broker.send(records, "compression.type=" + (target.equals("lz4") ? "zstd" : "lz4"), "linger.ms=100");
            Records.same(records, broker.read(topic, records.size()));
        }
    }

    @Case("timestamps in any order")
    static void timestamps(Broker broker) throws Exception {
        String topic = broker.topic(1);
        List<ProducerRecord<byte[], byte[]>> records = Records.every(topic);
        Collections.reverse(records);
        records.add(new ProducerRecord<>(topic, 0, 0L, null, Records.bytes("1970")));
        broker.send(records, "linger.ms=100");
        Records.same(records, broker.read(topic, records.size()));
    }

    @Case("the time of the append, where the topic wants it")
    static void logAppendTime(Broker broker) throws Exception {
        String topic = broker.topic(1, "message.timestamp.type=LogAppendTime");
        List<RecordMetadata> sent = broker.send(Records.numbered(topic, 10), "linger.ms=100");
        for (ConsumerRecord<byte[], byte[]> record : broker.read(topic, 10)) {
            Check.equal(TimestampType.LOG_APPEND_TIME, record.timestampType(), "timestamp type");
            Check.equal(sent.get((int) record.offset()).timestamp(), record.timestamp(), "timestamp");
            Check.that(record.timestamp() > Records.START + 1_000_000, "the broker's time, not the record's");
        }
    }

    @Case("a timestamp too far from now")
    static void timestampLimits(Broker broker) throws Exception {
        String topic = broker.topic(1, "message.timestamp.before.max.ms=60000");
        long now = System.currentTimeMillis();
        for (long time : new long[] {now - 3_600_000, now + 7_200_000}) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, time, null, Records.bytes("x"));
            Check.fails(InvalidTimestampException.class, () -> broker.send(List.of(record)));
        }
        broker.send(List.of(new ProducerRecord<>(topic, 0, now, null, Records.bytes("now"))));
        Check.equal(1, broker.read(topic, 1).size(), "records accepted");
    }

    @Case("a compacted topic wants keys")
    static void compactedTopic(Broker broker) throws Exception {
        String topic = broker.topic(1, "cleanup.policy=compact");
        Check.fails(InvalidRecordException.class, () -> broker.send(List.of(Records.record(topic, null, "x"))));
        broker.send(List.of(Records.record(topic, "key", null)));
        Check.equal("key", Records.text(broker.read(topic, 1).get(0).key()), "the record with a key");
    }
}
