import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.DefaultRecord;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;

/** Large messages, many partitions. */
final class LargeCases {
    private static final int MIB = 1024 * 1024;
    private static final int DEFAULT_LIMIT = MIB + 12;

    private LargeCases() {
    }

    @Case("a message of 1 MiB")
    static void one(Broker broker) throws Exception {
        large(broker, MIB, "none");
    }

    @Case("a message of 20 MiB")
    static void twenty(Broker broker) throws Exception {
        large(broker, 20 * MIB, "none");
    }

    @Case("a message of 20 MiB, in zstd")
    static void compressed(Broker broker) throws Exception {
        large(broker, 20 * MIB, "zstd");
    }

    private static void large(Broker broker, int size, String codec) throws Exception {
        int limit = size + MIB;
        String topic = broker.topic(1, "max.message.bytes=" + limit);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        records.add(new ProducerRecord<>(topic, 0, Records.START, Records.bytes("large"), Records.noise(size)));
        records.add(new ProducerRecord<>(topic, 0, Records.START, Records.bytes("small"), Records.bytes("x")));
        // The batch size keeps the second record out of the large one's batch.
        String[] limits = {"max.request.size=" + limit, "buffer.memory=" + 3L * limit, "batch.size=1000"};
        broker.send(records, "compression.type=" + codec, limits[0], limits[1], limits[2]);
        // Larger than fetch.max.bytes and max.partition.fetch.bytes: the first batch comes all the same.
        Records.same(records, broker.read(topic, 2, "max.partition.fetch.bytes=1000", "fetch.max.bytes=1000"));
    }

    @Case("the largest message that the default limit lets in, and one byte more")
    static void limit(Broker broker) throws Exception {
        String topic = broker.topic(1);
        int empty = DefaultRecordBatch.RECORD_BATCH_OVERHEAD
            + DefaultRecord.sizeInBytes(0, 0, null, ByteBuffer.allocate(MIB - 100), new Header[0])
            - (MIB - 100);
        int largest = DEFAULT_LIMIT - empty;
        String[] configs = {"max.request.size=" + 2 * MIB, "batch.size=1000"};
        ProducerRecord<byte[], byte[]> fits = new ProducerRecord<>(topic, 0, null, new byte[largest]);
        ProducerRecord<byte[], byte[]> tooLarge = new ProducerRecord<>(topic, 0, null, new byte[largest + 1]);
        broker.send(List.of(fits), configs);
        Check.fails(RecordTooLargeException.class, () -> broker.send(List.of(tooLarge), configs));
        Check.equal(largest, broker.read(topic, 1).get(0).serializedValueSize(), "size of the record let in");
    }

    @Case("1,000 partitions")
    static void partitions(Broker broker) throws Exception {
        String topic = broker.topic(1000);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            records.add(new ProducerRecord<>(topic, i, null, Records.bytes("value " + i)));
        }
        broker.send(records);
        List<TopicPartition> all = Broker.partitions(topic, 1000);
        try (Consumer<byte[], byte[]> consumer = broker.consumer()) {
            Check.equal(1000, consumer.partitionsFor(topic).size(), "partitions in the metadata");
            Check.that(consumer.endOffsets(all).values().stream().allMatch(end -> end == 1), "end offsets of 1");
            consumer.assign(all);
            Set<Integer> seen = new HashSet<>();
            for (ConsumerRecord<byte[], byte[]> record : Broker.read(consumer, 1000)) {
                Check.equal("value " + record.partition(), Records.text(record.value()), "value");
                seen.add(record.partition());
            }
            Check.equal(1000, seen.size(), "partitions read");
        }
        broker.admin.deleteTopics(List.of(topic)).all().get();
    }
}
