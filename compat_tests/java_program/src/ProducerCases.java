import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.InvalidTopicException;

/** Acknowledgements, order, partitions. */
final class ProducerCases {
    private ProducerCases() {
    }

    @Case("acks=0")
    static void acksNone(Broker broker) throws Exception {
        acks(broker, -1, "acks=0", "enable.idempotence=false");
    }

    @Case("acks=1")
    static void acksLeader(Broker broker) throws Exception {
        acks(broker, 9, "acks=1", "enable.idempotence=false");
    }

    @Case("acks=all without idempotence")
    static void acksAll(Broker broker) throws Exception {
        acks(broker, 9, "acks=all", "enable.idempotence=false");
    }

    private static void acks(Broker broker, long lastOffset, String... configs) throws Exception {
        String topic = broker.topic(1);
        List<ProducerRecord<byte[], byte[]>> records = Records.numbered(topic, 10);
        Check.equal(lastOffset, broker.send(records, configs).get(9).offset(), "last offset told to the producer");
        Records.same(records, broker.read(topic, 10));
    }

    @Case("an idempotent producer with many batches under way keeps their order")
    static void order(Broker broker) throws Exception {
        String topic = broker.topic(1);
        int count = 50_000;
        String[] configs = {"batch.size=2000", "linger.ms=5", "max.in.flight.requests.per.connection=5"};
        List<RecordMetadata> sent = broker.send(Records.numbered(topic, count), configs);
        Check.equal((long) count - 1, sent.get(count - 1).offset(), "last offset");
        List<ConsumerRecord<byte[], byte[]>> got = broker.read(topic, count);
        Check.equal(count, got.size(), "number of records");
        for (int i = 0; i < count; i++) {
            Check.equal(Integer.toString(i), Records.text(got.get(i).value()), "value at offset " + i);
        }
    }

    @Case("several producers at the same time")
    static void several(Broker broker) throws Exception {
        String topic = broker.topic(1);
        List<Producer<byte[], byte[]>> producers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            producers.add(broker.producer("linger.ms=1"));
        }
        for (int n = 0; n < 1000; n++) {
            for (int i = 0; i < producers.size(); i++) {
                producers.get(i).send(Records.record(topic, Integer.toString(i), Integer.toString(n)));
            }
        }
        producers.forEach(Producer::close);
        Map<String, Integer> next = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : broker.read(topic, 4000)) {
            int n = next.merge(Records.text(record.key()), 1, Integer::sum) - 1;
            Check.equal(Integer.toString(n), Records.text(record.value()), "next value of a producer");
        }
        Check.equal(Map.of("0", 1000, "1", 1000, "2", 1000, "3", 1000), next, "records of each producer");
    }

    @Case("a key always goes to the same partition")
    static void keys(Broker broker) throws Exception {
        String topic = broker.topic(6);
        for (int round = 0; round < 2; round++) {
            List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                records.add(new ProducerRecord<>(topic, Records.bytes("key " + i), Records.bytes("value " + round)));
            }
            broker.send(records);
        }
        Map<String, Set<Integer>> places = new TreeMap<>();
        try (Consumer<byte[], byte[]> consumer = broker.consumer()) {
            consumer.assign(Broker.partitions(topic, 6));
            for (ConsumerRecord<byte[], byte[]> record : Broker.read(consumer, 400)) {
                places.computeIfAbsent(Records.text(record.key()), key -> new TreeSet<>()).add(record.partition());
            }
        }
        Check.equal(200, places.size(), "number of keys");
        Check.that(places.values().stream().allMatch(partitions -> partitions.size() == 1), "one partition a key: " + places);
        Set<Integer> used = new TreeSet<>();
        places.values().forEach(used::addAll);
        Check.equal(6, used.size(), "partitions used");
    }

    @Case("a topic created by the first record sent to it")
    static void autoCreation(Broker broker) throws Exception {
        String topic = broker.name();
        broker.send(List.of(Records.record(topic, "key", "value")));
        Check.equal("value", Records.text(broker.read(topic, 1).get(0).value()), "the record");
    }

    @Case("a topic name that is not allowed")
    static void invalidName(Broker broker) throws Exception {
        Check.fails(InvalidTopicException.class, () -> broker.send(List.of(Records.record("no spaces", null, "x"))));
    }
}
