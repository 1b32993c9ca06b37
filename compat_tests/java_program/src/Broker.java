import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The broker under test, and the ways to it. Settings are given as "key=value", over the clients' defaults. */
final class Broker implements AutoCloseable {
    /** How long anything that must happen may take. */
    static final Duration PATIENCE = Duration.ofSeconds(30);

    final String bootstrap;
    final Admin admin;

    Broker(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
    }

    @Override
    public void close() {
        admin.close();
    }

    /** A name that no topic has. */
    String name() {
        return "java-" + UUID.randomUUID();
    }

    /** Creates a topic and returns its name when it can be used. */
    String topic(int partitions, String... configs) throws Exception {
        return create(new NewTopic(name(), partitions, (short) 1).configs(pairs(configs)));
    }

    String create(NewTopic topic) throws Exception {
        admin.createTopics(List.of(topic)).all().get();
        // kwire answers when the topic can be used. Apache Kafka's brokers hear of it a moment later.
        for (long end = System.nanoTime() + PATIENCE.toNanos(); System.nanoTime() < end; Thread.sleep(20)) {
            try {
                admin.describeTopics(List.of(topic.name())).allTopicNames().get();
                break;
            } catch (ExecutionException error) {
                Check.that(error.getCause() instanceof UnknownTopicOrPartitionException, error.toString());
            }
        }
        return topic.name();
    }

    Producer<byte[], byte[]> producer(String... configs) {
        return new KafkaProducer<>(settings(configs), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /**
     * A consumer without a group, assigned nothing yet, which starts at the beginning. Its fetches wait for 100 ms at the
     * most, since closing a consumer waits for the fetch under way.
     */
    Consumer<byte[], byte[]> consumer(String... configs) {
        Map<String, Object> settings = settings("auto.offset.reset=earliest", "fetch.max.wait.ms=100");
        settings.putAll(pairs(configs));
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Sends all, waits for all, and returns the metadata in the same order; the first failure is thrown. */
    List<RecordMetadata> send(Collection<ProducerRecord<byte[], byte[]>> records, String... configs) throws Exception {
        List<RecordMetadata> sent = new ArrayList<>();
        try (Producer<byte[], byte[]> producer = producer(configs)) {
            List<Future<RecordMetadata>> futures = records.stream().map(producer::send).collect(Collectors.toList());
            producer.flush();
            for (Future<RecordMetadata> future : futures) {
                sent.add(future.get());
            }
        }
        return sent;
    }

    /** The first `count` records of partition 0, or fewer when no more come in time. */
    List<ConsumerRecord<byte[], byte[]>> read(String topic, int count, String... configs) {
        try (Consumer<byte[], byte[]> consumer = consumer(configs)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            return read(consumer, count);
        }
    }

    /** The next records that the consumer has, at least `count` of them unless no more come in time. */
    static List<ConsumerRecord<byte[], byte[]>> read(Consumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        for (long end = System.nanoTime() + PATIENCE.toNanos(); got.size() < count && System.nanoTime() < end;) {
            consumer.poll(Duration.ofMillis(500)).forEach(got::add);
        }
        return got;
    }

    static List<TopicPartition> partitions(String topic, int count) {
        return IntStream.range(0, count).mapToObj(i -> new TopicPartition(topic, i)).collect(Collectors.toList());
    }

    private Map<String, Object> settings(String... configs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.putAll(pairs(configs));
        return settings;
    }

    private static Map<String, String> pairs(String... configs) {
        Map<String, String> pairs = new HashMap<>();
        for (String config : configs) {
            int equals = config.indexOf('=');
            pairs.put(config.substring(0, equals), config.substring(equals + 1));
        }
        return pairs;
    }
}
