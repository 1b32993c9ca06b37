import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Producers with a transactional id. */
final class TransactionCases {
    private TransactionCases() {
    }

    @Case("a copy loop in transactions hands on each record once")
    static void copying(Broker broker) throws Exception {
        String from = broker.topic(2);
        String to = broker.topic(1);
        int count = 200;
        broker.send(IntStream.range(0, count)
            .mapToObj(i -> new ProducerRecord<>(from, i % 2, Records.bytes("" + i), Records.bytes("" + i)))
            .collect(Collectors.toList()));
        String group = broker.name();
        String[] membership = {"group.id=" + group, "isolation.level=read_committed", "enable.auto.commit=false", "max.poll.records=20"};
        try (Consumer<byte[], byte[]> consumer = broker.consumer(membership);
            Producer<byte[], byte[]> producer = broker.producer("transactional.id=" + broker.name())) {
            consumer.subscribe(Set.of(from));
            producer.initTransactions();
            int transactions = 0;
            for (int copied = 0; copied < count;) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    producer.send(new ProducerRecord<>(to, 0, record.key(), record.value()));
                    next.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                if (++transactions % 3 == 0) {
                    producer.abortTransaction();
                    // What was aborted is read and copied again.
                    Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(next.keySet());
                    next.keySet().forEach(partition -> {
                        OffsetAndMetadata before = committed.get(partition);
                        consumer.seek(partition, before == null ? 0 : before.offset());
                    });
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                }
            }
            Check.that(transactions > 3, "several transactions, some of them aborted");
            Map<TopicPartition, Long> committed = new HashMap<>();
            consumer.committed(Set.copyOf(Broker.partitions(from, 2))).forEach((partition, place) -> committed.put(partition, place.offset()));
            Check.equal(Map.of(new TopicPartition(from, 0), 100L, new TopicPartition(from, 1), 100L), committed, "offsets");
        }
        List<Integer> arrived = broker.read(to, count, "isolation.level=read_committed").stream()
            .map(record -> Integer.parseInt(Records.text(record.value()))).sorted().collect(Collectors.toList());
        Check.equal(IntStream.range(0, count).boxed().collect(Collectors.toList()), arrived, "copies");
    }

    @Case("the second producer of a transactional id fences the first")
    static void fencing(Broker broker) throws Exception {
        String topic = broker.topic(1);
        String id = "transactional.id=" + broker.name();
        try (Producer<byte[], byte[]> zombie = broker.producer(id); Producer<byte[], byte[]> successor = broker.producer(id)) {
            zombie.initTransactions();
            zombie.beginTransaction();
            zombie.send(Records.record(topic, null, "zombie")).get();
            successor.initTransactions();
            successor.beginTransaction();
            successor.send(Records.record(topic, null, "successor")).get();
            ApiException error = Check.fails(ApiException.class, () -> {
                zombie.commitTransaction();
                return "committed";
            });
            Check.that(error instanceof ProducerFencedException || error instanceof InvalidProducerEpochException, error.toString());
            successor.commitTransaction();
        }
        List<ConsumerRecord<byte[], byte[]>> seen = broker.read(topic, 1, "isolation.level=read_committed");
        Check.equal(List.of("successor"), seen.stream().map(record -> Records.text(record.value())).collect(Collectors.toList()), "records");
    }

    @Case("a transaction shows its records of all partitions or none")
    static void ends(Broker broker) throws Exception {
        String topic = broker.topic(3);
        try (Producer<byte[], byte[]> producer = broker.producer("transactional.id=" + broker.name());
            Consumer<byte[], byte[]> consumer = broker.consumer("isolation.level=read_committed")) {
            consumer.assign(Broker.partitions(topic, 3));
            producer.initTransactions();
            for (String value : List.of("aborted", "committed")) {
                producer.beginTransaction();
                for (int partition = 0; partition < 3; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, Records.bytes(value))).get();
                }
                Check.that(consumer.poll(Duration.ofMillis(300)).isEmpty(), "nothing of an open transaction");
                if (value.equals("aborted")) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            List<String> seen = Broker.read(consumer, 3).stream().map(record -> Records.text(record.value())).collect(Collectors.toList());
            Check.equal(List.of("committed", "committed", "committed"), seen, "records");
        }
    }
}
