import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** An assigned consumer: waiting, limits, fetch sessions. */
final class ConsumerCases {
    private ConsumerCases() {
    }

    @Case("a waiting fetch is woken by the record it waits for")
    static void waiting(Broker broker) throws Exception {
        String topic = broker.topic(1);
        // Only the record itself can end this fetch in time.
        String[] configs = {"fetch.max.wait.ms=300000", "request.timeout.ms=400000", "default.api.timeout.ms=400000"};
        Consumer<byte[], byte[]> consumer = broker.consumer(configs);
        try {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.poll(Duration.ofMillis(300));
            CompletableFuture<Void> sent = CompletableFuture.runAsync(() -> {
                try {
                    broker.send(List.of(Records.record(topic, null, "at last")));
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            ConsumerRecords<byte[], byte[]> got = consumer.poll(Broker.PATIENCE);
            sent.get();
            Check.equal(1, got.count(), "records");
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    @Case("a fetch waits for the bytes it asked for")
    static void minimum(Broker broker) throws Exception {
        String topic = broker.topic(1);
        broker.send(List.of(Records.record(topic, null, "small")));
        String[] configs = {
            "fetch.min.bytes=10000", "fetch.max.wait.ms=300000", "request.timeout.ms=400000", "default.api.timeout.ms=400000"
        };
        Consumer<byte[], byte[]> consumer = broker.consumer(configs);
        try {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Check.that(consumer.poll(Duration.ofMillis(600)).isEmpty(), "too little to answer");
            broker.send(List.of(new ProducerRecord<>(topic, 0, null, Records.noise(20_000))));
            Check.equal(2, Broker.read(consumer, 2).size(), "records");
        } finally {
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    @Case("limits on what a fetch may bring")
    static void maximum(Broker broker) throws Exception {
        String topic = broker.topic(4);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 400; i++) {
            records.add(new ProducerRecord<>(topic, i % 4, null, Records.noise(1000)));
        }
        broker.send(records, "batch.size=5000");
        List<String[]> limits = List.of(
            new String[] {"max.partition.fetch.bytes=1"},
            new String[] {"fetch.max.bytes=1"},
            new String[] {"max.poll.records=7"},
            new String[] {"fetch.max.bytes=20000", "max.partition.fetch.bytes=8000"});
        for (String[] configs : limits) {
            try (Consumer<byte[], byte[]> consumer = broker.consumer(configs)) {
                consumer.assign(Broker.partitions(topic, 4));
                Map<Integer, Long> next = new TreeMap<>();
                for (ConsumerRecord<byte[], byte[]> record : Broker.read(consumer, 400)) {
                    Check.equal(next.merge(record.partition(), 1L, Long::sum) - 1, record.offset(), "next offset");
                }
                Check.equal(Map.of(0, 100L, 1, 100L, 2, 100L, 3, 100L), next, "records with " + String.join(", ", configs));
            }
        }
    }

    @Case("a fetch session whose partitions change")
    static void sessions(Broker broker) throws Exception {
        String topic = broker.topic(20);
        List<TopicPartition> all = Broker.partitions(topic, 20);
        try (Consumer<byte[], byte[]> consumer = broker.consumer()) {
            List<List<TopicPartition>> assignments = List.of(all, all.subList(5, 15), all.subList(0, 8), List.of(all.get(19)), all);
            long round = 0;
            for (List<TopicPartition> assigned : assignments) {
                consumer.assign(assigned);
                consumer.pause(assigned.subList(1, assigned.size()));
                consumer.poll(Duration.ofMillis(100));
                consumer.seekToEnd(assigned);
                assigned.forEach(consumer::position);
                List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
                for (TopicPartition partition : all) {
                    records.add(new ProducerRecord<>(topic, partition.partition(), null, Records.bytes("round " + round)));
                }
                broker.send(records);
                Check.equal(Set.of(assigned.get(0)), partitions(Broker.read(consumer, 1)), "partitions not paused");
                consumer.resume(assigned);
                List<ConsumerRecord<byte[], byte[]>> rest = Broker.read(consumer, assigned.size() - 1);
                Check.equal(Set.copyOf(assigned.subList(1, assigned.size())), partitions(rest), "partitions resumed");
                for (ConsumerRecord<byte[], byte[]> record : rest) {
                    Check.equal("round " + round, Records.text(record.value()), "value");
                    Check.equal(round, record.offset(), "offset");
                }
                round++;
            }
        }
    }

    private static Set<TopicPartition> partitions(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(record -> new TopicPartition(record.topic(), record.partition())).collect(Collectors.toSet());
    }

    @Case("read_committed, where nobody writes transactions")
    static void readCommitted(Broker broker) throws Exception {
        String topic = broker.topic(1);
        List<ProducerRecord<byte[], byte[]>> records = Records.numbered(topic, 100);
        broker.send(records);
        Records.same(records, broker.read(topic, 100, "isolation.level=read_committed"));
        try (Consumer<byte[], byte[]> consumer = broker.consumer("isolation.level=read_committed")) {
            TopicPartition partition = new TopicPartition(topic, 0);
            Check.equal(Map.of(partition, 100L), consumer.endOffsets(List.of(partition)), "last stable offset");
        }
    }

    @Case("the consumer of the new group protocol, assigned by hand")
    static void newConsumer(Broker broker) throws Exception {
        String topic = broker.topic(1);
        List<ProducerRecord<byte[], byte[]>> records = Records.every(topic);
        broker.send(records);
        Records.same(records, broker.read(topic, records.size(), "group.protocol=consumer"));
    }

    @Case("the lag that a consumer knows of")
    static void lag(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 100));
        try (Consumer<byte[], byte[]> consumer = broker.consumer("max.poll.records=10")) {
            consumer.assign(List.of(partition));
            Broker.read(consumer, 10);
            Check.equal(90L, consumer.currentLag(partition).orElse(-1), "lag");
        }
    }

    @Case("topics and their partitions in the consumer's metadata")
    static void metadata(Broker broker) throws Exception {
        String topic = broker.topic(3);
        try (Consumer<byte[], byte[]> consumer = broker.consumer("allow.auto.create.topics=false")) {
            Check.equal(3, consumer.listTopics().get(topic).size(), "partitions listed");
            consumer.partitionsFor(topic).forEach(partition -> {
                Check.equal(1, partition.replicas().length, "replicas");
                Check.equal(partition.leader(), partition.inSyncReplicas()[0], "in sync");
                Check.equal(0, partition.offlineReplicas().length, "offline replicas");
            });
            String missing = broker.name();
            List<?> none = consumer.partitionsFor(missing);
            Check.that(none == null || none.isEmpty(), "no partitions of a missing topic");
            Check.that(!consumer.listTopics().containsKey(missing), "a topic that nobody asked to create");
        }
    }
}
