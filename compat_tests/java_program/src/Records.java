import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Records to send, and what to compare of those that come back. */
final class Records {
    /** The time of the first record; the next ones follow a second apart. */
    static final long START = 1_700_000_000_000L;

    private Records() {
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** Bytes that no codec makes smaller. */
    static byte[] noise(int size) {
        byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    static ProducerRecord<byte[], byte[]> record(String topic, String key, String value) {
        return new ProducerRecord<>(topic, 0, bytes(key), bytes(value));
    }

    /** Records with the values "0", "1" and so on, a second apart. */
    static List<ProducerRecord<byte[], byte[]>> numbered(String topic, int count) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            records.add(new ProducerRecord<>(topic, 0, START + 1000L * i, null, bytes(Integer.toString(i))));
        }
        return records;
    }

    /** One of every kind: each of key and value null, empty, short and long; headers repeated, null, empty and not ASCII. */
    static List<ProducerRecord<byte[], byte[]>> every(String topic) {
        byte[][] parts = {null, {}, bytes("short"), bytes("wörter ✓ ".repeat(500)), noise(3000)};
        List<Header> headers = List.of(
            new RecordHeader("a", bytes("1")),
            new RecordHeader("a", bytes("2")),
            new RecordHeader("null", (byte[]) null),
            new RecordHeader("empty", new byte[0]),
            new RecordHeader("ключ", noise(300)));
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (byte[] key : parts) {
            for (byte[] value : parts) {
                for (List<Header> some : List.of(List.<Header>of(), headers)) {
                    records.add(new ProducerRecord<>(topic, 0, START + 1000L * records.size(), key, value, some));
                }
            }
        }
        return records;
    }

    static void same(List<ProducerRecord<byte[], byte[]>> sent, List<ConsumerRecord<byte[], byte[]>> got) {
        Check.equal(sent.size(), got.size(), "number of records");
        for (int i = 0; i < sent.size(); i++) {
            ProducerRecord<byte[], byte[]> one = sent.get(i);
            ConsumerRecord<byte[], byte[]> other = got.get(i);
            Check.equal((long) i, other.offset(), "offset of record " + i);
            Check.that(Arrays.equals(one.key(), other.key()), "key of record " + i);
            Check.that(Arrays.equals(one.value(), other.value()), "value of record " + i);
            Check.equal(Arrays.asList(one.headers().toArray()), Arrays.asList(other.headers().toArray()), "headers of record " + i);
            Check.equal(one.timestamp(), other.timestamp(), "timestamp of record " + i);
        }
    }
}
