import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The admin client. */
final class AdminCases {
    private AdminCases() {
    }

    private static TopicDescription describe(Broker broker, String topic) throws Exception {
        return broker.admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    /** Waits until the check holds: where an answer does not mean that every reader knows, as in Apache Kafka. */
    private static void soon(Callable<Boolean> check, String what) throws Exception {
        for (long end = System.nanoTime() + Broker.PATIENCE.toNanos(); System.nanoTime() < end; Thread.sleep(20)) {
            if (check.call()) {
                return;
            }
        }
        throw new AssertionError(what);
    }

    @Case("what the answer to a creation says")
    static void creation(Broker broker) throws Exception {
        NewTopic wanted = new NewTopic(broker.name(), 3, (short) 1).configs(Map.of("retention.ms", "100000"));
        CreateTopicsResult result = broker.admin.createTopics(List.of(wanted));
        Check.equal(3, result.numPartitions(wanted.name()).get(), "partitions");
        Check.equal(1, result.replicationFactor(wanted.name()).get(), "replication factor");
        Config config = result.config(wanted.name()).get();
        Check.equal("100000", config.get("retention.ms").value(), "a given setting");
        Check.equal("delete", config.get("cleanup.policy").value(), "a default setting");
        Uuid id = result.topicId(wanted.name()).get();
        soon(() -> broker.admin.listTopics().names().get().contains(wanted.name()), "the topic in the list");
        TopicDescription description = describe(broker, wanted.name());
        Check.equal(id, description.topicId(), "topic id");
        Check.equal(3, description.partitions().size(), "partitions described");
        Check.equal(false, description.isInternal(), "internal");
        Map<Uuid, TopicDescription> byId =
            broker.admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get();
        Check.equal(wanted.name(), byId.get(id).name(), "name by id");
    }

    @Case("creations that are refused")
    static void refusedCreation(Broker broker) throws Exception {
        String name = broker.name();
        String existing = broker.topic(1);
        Map<NewTopic, Class<? extends Throwable>> wanted = Map.of(
            new NewTopic(existing, 1, (short) 1), TopicExistsException.class,
            new NewTopic(name + "-a", 1, (short) 3), InvalidReplicationFactorException.class,
            new NewTopic(name + "-b", 0, (short) 1), InvalidPartitionsException.class,
            new NewTopic(name + "-c", 1, (short) 1).configs(Map.of("retention.ms", "soon")), InvalidConfigurationException.class,
            new NewTopic("a:b", 1, (short) 1), InvalidTopicException.class);
        Map<String, KafkaFuture<Void>> results = broker.admin.createTopics(wanted.keySet()).values();
        for (Map.Entry<NewTopic, Class<? extends Throwable>> one : wanted.entrySet()) {
            Check.fails(one.getValue(), () -> results.get(one.getKey().name()).get());
        }
        Check.fails(UnknownTopicOrPartitionException.class, () -> describe(broker, name + "-c"));
    }

    @Case("a creation only validated")
    static void validation(Broker broker) throws Exception {
        NewTopic wanted = new NewTopic(broker.name(), 3, (short) 1);
        CreateTopicsResult result = broker.admin.createTopics(List.of(wanted), new CreateTopicsOptions().validateOnly(true));
        Check.equal(3, result.numPartitions(wanted.name()).get(), "partitions");
        Check.fails(UnknownTopicOrPartitionException.class, () -> describe(broker, wanted.name()));
        broker.create(wanted);
        Check.equal(3, describe(broker, wanted.name()).partitions().size(), "partitions of the real one");
    }

    @Case("the broker's own defaults for partitions and replicas")
    static void defaults(Broker broker) throws Exception {
        String topic = broker.create(new NewTopic(broker.name(), Optional.empty(), Optional.empty()));
        Check.that(!describe(broker, topic).partitions().isEmpty(), "at least one partition");
    }

    @Case("deletion by name and by id")
    static void deletion(Broker broker) throws Exception {
        String byName = broker.topic(1);
        String byId = broker.topic(1);
        Uuid id = describe(broker, byId).topicId();
        broker.admin.deleteTopics(List.of(byName)).all().get();
        broker.admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        soon(() -> !names(broker).contains(byName), "gone by name");
        soon(() -> !names(broker).contains(byId), "gone by id");
        Check.fails(UnknownTopicOrPartitionException.class, () -> broker.admin.deleteTopics(List.of(byName)).all().get());
        Check.fails(
            UnknownTopicIdException.class,
            () -> broker.admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get());
        broker.create(new NewTopic(byId, 1, (short) 1));
        Check.that(!id.equals(describe(broker, byId).topicId()), "a new id for a new topic of the same name");
    }

    private static Collection<String> names(Broker broker) throws Exception {
        return broker.admin.listTopics().names().get();
    }

    @Case("more partitions")
    static void partitions(Broker broker) throws Exception {
        String topic = broker.topic(2);
        broker.send(List.of(Records.record(topic, null, "before")));
        broker.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        soon(() -> describe(broker, topic).partitions().size() == 5, "five partitions");
        Check.equal("before", Records.text(broker.read(topic, 1).get(0).value()), "what was there before");
        Check.fails(
            InvalidPartitionsException.class,
            () -> broker.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get());
        Check.fails(
            UnknownTopicOrPartitionException.class,
            () -> broker.admin.createPartitions(Map.of(broker.name(), NewPartitions.increaseTo(3))).all().get());
    }

    @Case("settings set, appended to, subtracted from and deleted")
    static void configs(Broker broker) throws Exception {
        String topic = broker.topic(1);
        alter(broker, topic, AlterConfigOp.OpType.SET, "retention.ms", "123456");
        alter(broker, topic, AlterConfigOp.OpType.APPEND, "cleanup.policy", "compact");
        soon(() -> value(broker, topic, "cleanup.policy").value().equals("delete,compact"), "appended");
        Check.equal("123456", value(broker, topic, "retention.ms").value(), "set");
        Check.equal(
            ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, value(broker, topic, "retention.ms").source(), "source of it");
        alter(broker, topic, AlterConfigOp.OpType.SUBTRACT, "cleanup.policy", "delete");
        soon(() -> value(broker, topic, "cleanup.policy").value().equals("compact"), "subtracted");
        alter(broker, topic, AlterConfigOp.OpType.DELETE, "retention.ms", "");
        soon(() -> value(broker, topic, "retention.ms").isDefault(), "deleted");
        Check.equal("604800000", value(broker, topic, "retention.ms").value(), "the default");
        Check.fails(
            InvalidConfigurationException.class,
            () -> {
                alter(broker, topic, AlterConfigOp.OpType.SET, "segment.bytes", "many");
                return null;
            });
    }

    private static void alter(Broker broker, String topic, AlterConfigOp.OpType type, String key, String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value), type);
        broker.admin.incrementalAlterConfigs(Map.of(resource(topic), List.of(op))).all().get();
    }

    private static ConfigEntry value(Broker broker, String topic, String key) throws Exception {
        return broker.admin.describeConfigs(List.of(resource(topic))).all().get().get(resource(topic)).get(key);
    }

    @Case("settings with synonyms, types and documentation")
    static void describedConfigs(Broker broker) throws Exception {
        ConfigResource topic = resource(broker.topic(1, "max.message.bytes=2000000"));
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        ConfigEntry entry = broker.admin.describeConfigs(List.of(topic), options).all().get().get(topic).get("max.message.bytes");
        Check.equal(ConfigEntry.ConfigType.INT, entry.type(), "type");
        Check.that(entry.documentation() != null && entry.documentation().length() > 20, "documentation");
        Check.equal(false, entry.isReadOnly(), "read only");
        Check.equal(false, entry.isSensitive(), "sensitive");
        Check.equal("max.message.bytes", entry.synonyms().get(0).name(), "first synonym");
        ConfigEntry.ConfigSynonym last = entry.synonyms().get(entry.synonyms().size() - 1);
        Check.equal("message.max.bytes", last.name(), "last synonym");
        Check.equal(ConfigEntry.ConfigSource.DEFAULT_CONFIG, last.source(), "source of the last synonym");
        String broker0 = Integer.toString(broker.admin.describeCluster().nodes().get().iterator().next().id());
        ConfigResource node = new ConfigResource(ConfigResource.Type.BROKER, broker0);
        Config settings = broker.admin.describeConfigs(List.of(node)).all().get().get(node);
        Check.equal(true, settings.get("log.dirs").isReadOnly(), "log.dirs read only");
        Check.equal(false, settings.get("log.retention.ms").isReadOnly(), "log.retention.ms read only");
        Check.that(settings.entries().size() > 150, "settings of a broker: " + settings.entries().size());
    }

    @Case("what settings there are to list")
    static void configResources(Broker broker) throws Exception {
        String topic = broker.topic(1);
        Collection<ConfigResource> found =
            broker.admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions()).all().get();
        Check.that(found.contains(resource(topic)), "the topic among " + found.size());
    }

    @Case("records deleted before an offset")
    static void deletedRecords(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 10));
        Admin admin = broker.admin;
        Map<TopicPartition, RecordsToDelete> some = Map.of(partition, RecordsToDelete.beforeOffset(4));
        Check.equal(4L, admin.deleteRecords(some).lowWatermarks().get(partition).get().lowWatermark(), "low watermark");
        Check.equal(4L, broker.read(topic, 6).get(0).offset(), "first offset left");
        Check.fails(
            OffsetOutOfRangeException.class,
            () -> admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(11))).all().get());
        Check.equal(4L, offset(broker, partition, OffsetSpec.earliest()), "earliest");
    }

    private static long offset(Broker broker, TopicPartition partition, OffsetSpec spec) throws Exception {
        return broker.admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
    }

    @Case("offsets of every kind")
    static void offsets(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 10));
        broker.send(Records.numbered(topic, 5));
        Map<OffsetSpec, Long> expected = new HashMap<>();
        expected.put(OffsetSpec.earliest(), 0L);
        expected.put(OffsetSpec.latest(), 15L);
        expected.put(OffsetSpec.maxTimestamp(), 9L);
        expected.put(OffsetSpec.forTimestamp(Records.START + 3500), 4L);
        expected.put(OffsetSpec.forTimestamp(Records.START + 99_000), -1L);
        expected.put(OffsetSpec.earliestLocal(), 0L);
        expected.put(OffsetSpec.latestTiered(), -1L);
        expected.put(OffsetSpec.earliestPendingUpload(), -1L);
        for (Map.Entry<OffsetSpec, Long> one : expected.entrySet()) {
            Check.equal(one.getValue(), offset(broker, partition, one.getKey()), one.getKey().getClass().getSimpleName());
        }
    }

    @Case("the cluster")
    static void cluster(Broker broker) throws Exception {
        DescribeClusterResult result =
            broker.admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        Check.equal(22, result.clusterId().get().length(), "length of the cluster id");
        Check.equal(1, result.nodes().get().size(), "nodes");
        Check.that(result.nodes().get().contains(result.controller().get()), "the controller is a node");
        Check.equal(
            broker.bootstrap,
            result.controller().get().host() + ":" + result.controller().get().port(),
            "the address by which the client came");
        Check.that(!result.authorizedOperations().get().isEmpty(), "authorized operations");
        Check.equal(null, broker.admin.describeCluster().authorizedOperations().get(), "authorized operations not asked for");
    }

    @Case("log directories")
    static void logDirs(Broker broker) throws Exception {
        String topic = broker.topic(2);
        broker.send(List.of(new ProducerRecord<>(topic, 0, null, Records.noise(5000))));
        int node = broker.admin.describeCluster().nodes().get().iterator().next().id();
        Map<TopicPartition, ReplicaInfo> replicas = new HashMap<>();
        for (LogDirDescription dir : broker.admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).values()) {
            Check.equal(null, dir.error(), "error");
            Check.that(dir.totalBytes().getAsLong() > dir.usableBytes().getAsLong(), "bytes of the volume");
            replicas.putAll(dir.replicaInfos());
        }
        Check.that(replicas.get(new TopicPartition(topic, 0)).size() > 5000, "size of a partition with data");
        Check.equal(0L, replicas.get(new TopicPartition(topic, 1)).size(), "size of an empty partition");
    }

    @Case("producers of a partition")
    static void producers(Broker broker) throws Exception {
        String topic = broker.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        broker.send(Records.numbered(topic, 7));
        List<ProducerState> states = broker.admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers();
        Check.equal(1, states.size(), "producers");
        Check.equal(6, states.get(0).lastSequence(), "last sequence");
        Check.equal(0, states.get(0).producerEpoch(), "epoch");
        Check.that(states.get(0).currentTransactionStartOffset().isEmpty(), "no transaction");
    }

    @Case("no reassignments, and none of an unknown partition")
    static void reassignments(Broker broker) throws Exception {
        Check.equal(Map.of(), broker.admin.listPartitionReassignments().reassignments().get(), "reassignments");
        Check.equal(
            Map.of(),
            broker.admin.listPartitionReassignments(Set.of(new TopicPartition(broker.topic(1), 0))).reassignments().get(),
            "reassignments of one partition");
    }

    @Case("a setting of a topic that is not there")
    static void unknownTopic(Broker broker) throws Exception {
        ConfigResource missing = resource(broker.name());
        Check.fails(
            UnknownTopicOrPartitionException.class, () -> broker.admin.describeConfigs(List.of(missing)).all().get());
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry("retention.ms", "100000"), AlterConfigOp.OpType.SET);
        Check.fails(
            UnknownTopicOrPartitionException.class,
            () -> broker.admin.incrementalAlterConfigs(Map.of(missing, List.of(op))).all().get());
    }
}
