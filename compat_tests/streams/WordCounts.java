import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * Counts the words of a topic of lines, once for each guarantee: WordCounts BOOTSTRAP LINES STATE_DIR APPLICATION=GUARANTEE...
 *
 * <p>Each application writes three tables, all counts as text: APPLICATION-words (key WORD), APPLICATION-hours (key
 * WINDOW_START WORD, the start in ms) and APPLICATION-letters (key FIRST_LETTER). It prints "APPLICATION STATE" when it
 * changes its state and "APPLICATION restored STORE RECORDS" when it has read a changelog, and ends when its standard input does.
 */
public final class WordCounts {
    private static final Pattern WORD = Pattern.compile("\\p{L}+(?:’\\p{L}+)*");
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Long> NUMBER = Serdes.Long();

    /** No line is too late for its window. */
    private static final TimeWindows HOURS = TimeWindows.ofSizeAndGrace(Duration.ofHours(1), Duration.ofDays(2));

    private WordCounts() {
    }

    public static void main(String[] arguments) throws Exception {
        List<KafkaStreams> applications = new ArrayList<>();
        for (int i = 3; i < arguments.length; i++) {
            String[] named = arguments[i].split("=");
            applications.add(start(arguments[0], arguments[1], arguments[2], named[0], named[1]));
        }
        while (System.in.read() >= 0) {
            // Whatever is said: only the end counts.
        }
        // Otherwise the group waits for the session to time out, as it does for what was killed.
        applications.forEach(application -> application.close(CloseOptions.groupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP)));
        System.exit(0);
    }

    private static KafkaStreams start(String bootstrap, String lines, String folder, String application, String guarantee) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "classic");
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        if (guarantee.equals("at_least_once")) {
            // What it writes between its two halves is looked at in the end.
            settings.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 86_400_000L);
        }
        // What was killed is out of the group as soon as a broker allows.
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 1000);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        KafkaStreams streams = new KafkaStreams(topology(lines, application), settings);
        streams.setStateListener((now, before) -> System.out.println(application + " " + now));
        streams.setGlobalStateRestoreListener(new Restored(application));
        streams.start();
        return streams;
    }

    private static Topology topology(String topic, String application) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(topic, Consumed.with(TEXT, TEXT));
        KGroupedStream<String, String> words = lines
            .flatMapValues(line -> WORD.matcher(line.toLowerCase(Locale.ROOT)).results().map(MatchResult::group).collect(Collectors.toList()))
            .groupBy((line, word) -> word, Grouped.with("by-word", TEXT, TEXT));

        KTable<String, Long> counts = words.count(Materialized.as("counts"));
        write(counts.toStream(), application + "-words");

        KStream<String, Long> hours = words.windowedBy(HOURS).count(Materialized.as("counts-by-hour"))
            .toStream((window, count) -> window.window().start() + " " + window.key());
        write(hours, application + "-hours");

        KTable<String, Long> letters = counts
            .groupBy((word, count) -> KeyValue.pair(word.substring(0, 1), count), Grouped.with("by-letter", TEXT, NUMBER))
            .reduce(Long::sum, (sum, gone) -> sum - gone, Materialized.as("letters"));
        write(letters.toStream(), application + "-letters");
        return builder.build();
    }

    private static void write(KStream<String, Long> counts, String topic) {
        counts.mapValues(count -> Long.toString(count)).to(topic, Produced.with(TEXT, TEXT));
    }

    private record Restored(String application) implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long to, long records) {
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long records) {
            System.out.println(application + " restored " + store + " " + records);
        }
    }
}
