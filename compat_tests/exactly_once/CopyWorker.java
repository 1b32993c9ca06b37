import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A worker of the pipeline: CopyWorker PROTOCOL BOOTSTRAP GROUP SOURCE TARGET TRANSACTIONAL_ID.
 *
 * It does what worker.py does, in a group of PROTOCOL (classic or consumer), and its transactions are those of
 * transaction version 2. With the first error that its clients do not get over by themselves it ends, its transaction
 * open: whoever runs it starts it again.
 */
final class CopyWorker {
    /** Records in a transaction at the most. */
    private static final int BATCH = 5;

    private CopyWorker() {
    }

    public static void main(String[] arguments) {
        try {
            copy(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
        } catch (Exception error) {
            System.err.println(error);
            // As a crash would: closing a producer waits for a transaction that is not going to end.
            Runtime.getRuntime().halt(1);
        }
    }

    private static void copy(String protocol, String bootstrap, String group, String source, String target, String id) {
        Map<String, Object> common = Map.of(
            "bootstrap.servers", bootstrap, "reconnect.backoff.ms", "20", "reconnect.backoff.max.ms", "100", "retry.backoff.ms", "20");
        Map<String, Object> writing = new HashMap<>(common);
        writing.putAll(Map.of("transactional.id", id, "transaction.timeout.ms", "30000", "linger.ms", "0", "max.block.ms", "20000"));
        Map<String, Object> reading = new HashMap<>(common);
        reading.putAll(Map.of(
            "group.id", group, "group.protocol", protocol, "isolation.level", "read_committed", "enable.auto.commit", "false",
            "auto.offset.reset", "none", "max.poll.records", BATCH, "fetch.max.wait.ms", "100"));
        if (protocol.equals("classic")) {
            reading.putAll(Map.of("session.timeout.ms", "2000", "heartbeat.interval.ms", "300"));
        }
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
            KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (true) {
                // A poll gives up partitions before it returns records, and all of these are copied before the next.
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                    for (ConsumerRecord<byte[], byte[]> record : records) {
                        producer.send(new ProducerRecord<>(target, record.key(), record.value()));
                        next.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                    producer.commitTransaction();
                }
            }
        }
    }
}
