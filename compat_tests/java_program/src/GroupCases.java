import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Consumers that share topics in a group. */
final class GroupCases {
    private static final int PARTITIONS = 4;

    private GroupCases() {
    }

    @Case("members of the classic protocol share, leave, and go on where the group is")
    static void classic(Broker broker) throws Exception {
        sharing(broker, "classic");
    }

    @Case("members of the consumer protocol share, leave, and go on where the group is")
    static void consumer(Broker broker) throws Exception {
        sharing(broker, "consumer");
    }

    private static void sharing(Broker broker, String protocol) throws Exception {
        String topic = broker.topic(PARTITIONS);
        String group = group(broker);
        try (Consumer<byte[], byte[]> one = member(broker, group, protocol)) {
            one.subscribe(Set.of(topic));
            until(List.of(one), () -> one.assignment().size() == PARTITIONS);
            try (Consumer<byte[], byte[]> two = member(broker, group, protocol)) {
                two.subscribe(Set.of(topic));
                until(List.of(one, two), () -> one.assignment().size() == 2 && two.assignment().size() == 2);
                Check.that(one.assignment().stream().noneMatch(two.assignment()::contains), "a partition has one owner");
                fill(broker, topic, 10);
                List<String> seen = new ArrayList<>();
                until(List.of(one, two), seen, () -> seen.size() == 10 * PARTITIONS);
                one.commitSync();
                two.commitSync();
            }
            until(List.of(one), () -> one.assignment().size() == PARTITIONS);
            fill(broker, topic, 1);
            List<String> seen = new ArrayList<>();
            until(List.of(one), seen, () -> seen.size() >= PARTITIONS);
            Check.equal(List.of("0", "0", "0", "0"), seen, "what came after the commits");
        }
    }

    @Case("members of the classic protocol commit at once, later, and by themselves")
    static void classicCommits(Broker broker) throws Exception {
        commits(broker, "classic");
    }

    @Case("members of the consumer protocol commit at once, later, and by themselves")
    static void consumerCommits(Broker broker) throws Exception {
        commits(broker, "consumer");
    }

    private static void commits(Broker broker, String protocol) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        String group = group(broker);
        try (Consumer<byte[], byte[]> member = member(broker, group, protocol)) {
            member.subscribe(Set.of(topic));
            until(List.of(member), () -> !member.assignment().isEmpty());
            // The classic client asks where to begin, and would take a late answer to that for one to `committed`.
            member.position(partition);
            member.commitSync(Map.of(partition, new OffsetAndMetadata(3, "at once")));
            Check.equal(new OffsetAndMetadata(3, "at once"), member.committed(Set.of(partition)).get(partition), "at once");
            CompletableFuture<Exception> done = new CompletableFuture<>();
            member.commitAsync(Map.of(partition, new OffsetAndMetadata(5, "later")), (offsets, error) -> done.complete(error));
            until(List.of(member), done::isDone);
            Check.equal(null, done.get(), "error of a commit that is not waited for");
            Check.equal(new OffsetAndMetadata(5, "later"), member.committed(Set.of(partition)).get(partition), "later");
        }
        fill(broker, topic, 8);
        try (Consumer<byte[], byte[]> member = member(broker, group, protocol, "enable.auto.commit=true", "auto.commit.interval.ms=100")) {
            member.subscribe(Set.of(topic));
            List<String> seen = new ArrayList<>();
            until(List.of(member), seen, () -> seen.size() == 3);
            Check.equal(List.of("5", "6", "7"), seen, "values from the committed offset on");
            until(List.of(member), () -> committed(broker, group, partition) == 8);
        }
    }

    @Case("a member that has to leave its group may not commit any more")
    static void tooSlow(Broker broker) throws Exception {
        String topic = broker.topic(1);
        String group = group(broker);
        try (Consumer<byte[], byte[]> slow = member(broker, group, "classic", "max.poll.interval.ms=1000");
            Consumer<byte[], byte[]> other = member(broker, group, "classic")) {
            slow.subscribe(Set.of(topic));
            until(List.of(slow), () -> !slow.assignment().isEmpty());
            other.subscribe(Set.of(topic));
            until(List.of(other), () -> !other.assignment().isEmpty());
            TopicPartition partition = new TopicPartition(topic, 0);
            Check.fails(CommitFailedException.class, () -> {
                slow.commitSync(Map.of(partition, new OffsetAndMetadata(1)));
                return "committed";
            });
            other.commitSync(Map.of(partition, new OffsetAndMetadata(2)));
            Check.equal(2L, committed(broker, group, partition), "offset");
        }
    }

    @Case("a static member of the classic protocol comes back unnoticed")
    static void classicStatic(Broker broker) throws Exception {
        staticMember(broker, "classic");
    }

    @Case("a static member of the consumer protocol comes back unnoticed")
    static void consumerStatic(Broker broker) throws Exception {
        staticMember(broker, "consumer");
    }

    private static void staticMember(Broker broker, String protocol) throws Exception {
        String topic = broker.topic(PARTITIONS);
        String group = group(broker);
        Watcher watcher = new Watcher();
        try (Consumer<byte[], byte[]> one = member(broker, group, protocol, "group.instance.id=one")) {
            one.subscribe(Set.of(topic), watcher);
            Set<TopicPartition> before;
            try (Consumer<byte[], byte[]> two = member(broker, group, protocol, "group.instance.id=two")) {
                two.subscribe(Set.of(topic));
                until(List.of(one, two), () -> one.assignment().size() == 2 && two.assignment().size() == 2);
                before = Set.copyOf(two.assignment());
            }
            watcher.changes.clear();
            try (Consumer<byte[], byte[]> again = member(broker, group, protocol, "group.instance.id=two")) {
                again.subscribe(Set.of(topic));
                until(List.of(one, again), () -> !again.assignment().isEmpty());
                Check.equal(before, again.assignment(), "partitions of the one that came back");
                fill(broker, topic, 5);
                List<String> seen = new ArrayList<>();
                until(List.of(one, again), seen, () -> seen.size() == 5 * PARTITIONS);
                Check.equal(List.of(), watcher.changes, "changes that the other one saw");
            }
        }
    }

    @Case("a cooperative member gives up no more than it has to")
    static void cooperative(Broker broker) throws Exception {
        String topic = broker.topic(PARTITIONS);
        String group = group(broker);
        String[] strategy = {"partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"};
        Watcher watcher = new Watcher();
        try (Consumer<byte[], byte[]> one = member(broker, group, "classic", strategy);
            Consumer<byte[], byte[]> two = member(broker, group, "classic", strategy)) {
            one.subscribe(Set.of(topic), watcher);
            until(List.of(one), () -> one.assignment().size() == PARTITIONS);
            watcher.changes.clear();
            two.subscribe(Set.of(topic));
            until(List.of(one, two), () -> one.assignment().size() == 2 && two.assignment().size() == 2);
            List<String> revoked = watcher.changes.stream().filter(change -> change.startsWith("revoked ")).collect(Collectors.toList());
            Check.equal(List.of("revoked 2"), revoked, "what was revoked");
        }
    }

    @Case("topics by a regular expression, of the client and of the broker")
    static void patterns(Broker broker) throws Exception {
        for (String protocol : List.of("classic", "consumer")) {
            String topic = broker.topic(1);
            String later = topic + "-later";
            try (Consumer<byte[], byte[]> member = member(broker, group(broker), protocol, "metadata.max.age.ms=300")) {
                if (protocol.equals("classic")) {
                    member.subscribe(Pattern.compile(topic + ".*"));
                } else {
                    member.subscribe(new SubscriptionPattern(topic + ".*"));
                }
                until(List.of(member), () -> topics(member).equals(Set.of(topic)));
                broker.create(new NewTopic(later, 1, (short) 1));
                until(List.of(member), () -> topics(member).equals(Set.of(topic, later)));
            }
        }
    }

    private static Set<String> topics(Consumer<byte[], byte[]> member) {
        return member.assignment().stream().map(TopicPartition::topic).collect(Collectors.toSet());
    }

    /** A name that no group has. Should its members be of the consumer protocol, they hear of a new assignment as soon as the broker allows. */
    private static String group(Broker broker) throws Exception {
        String group = broker.name();
        String node = Integer.toString(broker.admin.describeCluster().nodes().get().iterator().next().id());
        ConfigResource settings = new ConfigResource(ConfigResource.Type.BROKER, node);
        String least = broker.admin.describeConfigs(List.of(settings)).all().get().get(settings)
            .get("group.consumer.min.heartbeat.interval.ms").value();
        AlterConfigOp often = new AlterConfigOp(new ConfigEntry("consumer.heartbeat.interval.ms", least), AlterConfigOp.OpType.SET);
        broker.admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(often))).all().get();
        return group;
    }

    /** A member that is in the group until it leaves: no test waits for its session's end. */
    private static Consumer<byte[], byte[]> member(Broker broker, String group, String protocol, String... configs) {
        List<String> all = new ArrayList<>(List.of("group.id=" + group, "group.protocol=" + protocol, "enable.auto.commit=false"));
        if (protocol.equals("classic")) {
            all.addAll(List.of("session.timeout.ms=300000", "heartbeat.interval.ms=100"));
        }
        all.addAll(List.of(configs));
        return broker.consumer(all.toArray(new String[0]));
    }

    /** Polls all in turn until it holds. */
    private static void until(List<Consumer<byte[], byte[]>> members, Callable<Boolean> holds) throws Exception {
        until(members, new ArrayList<>(), holds);
    }

    private static void until(List<Consumer<byte[], byte[]>> members, List<String> seen, Callable<Boolean> holds) throws Exception {
        for (long end = System.nanoTime() + Broker.PATIENCE.toNanos(); !holds.call();) {
            Check.that(System.nanoTime() < end, "not in time: " + members.stream().map(Consumer::assignment).collect(Collectors.toList()) + seen);
            for (Consumer<byte[], byte[]> member : members) {
                for (ConsumerRecord<byte[], byte[]> record : member.poll(Duration.ofMillis(50))) {
                    seen.add(Records.text(record.value()));
                }
            }
        }
    }

    /** Adds the values "0", "1", ... to each partition. */
    private static void fill(Broker broker, String topic, int each) throws Exception {
        int partitions = broker.admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < each * partitions; i++) {
            records.add(new ProducerRecord<>(topic, i % partitions, null, Records.bytes("" + i / partitions)));
        }
        broker.send(records);
    }

    private static long committed(Broker broker, String group, TopicPartition partition) throws Exception {
        return broker.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition).offset();
    }

    /** Notes what a member is given and has to give. */
    private static final class Watcher implements ConsumerRebalanceListener {
        private final List<String> changes = new ArrayList<>();

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            note("revoked", partitions);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            note("assigned", partitions);
        }

        private void note(String change, Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) {
                changes.add(change + " " + partitions.size());
            }
        }
    }
}
