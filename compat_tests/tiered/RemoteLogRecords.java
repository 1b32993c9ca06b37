import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;

/**
 * Apache Kafka's own reading of records of remote log metadata, and where it would put them.
 *
 * <p>Reads lines, and answers each with one: "record HEX" with what Kafka writes of what it has read, in hex;
 * "partition TOPIC-ID NUMBER COUNT" with the partition out of COUNT in which the records of a partition stand.
 */
public final class RemoteLogRecords {
    public static void main(String[] arguments) throws Exception {
        RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("record")) {
                byte[] value = HexFormat.of().parseHex(words[1]);
                System.out.println(HexFormat.of().formatHex(serde.serialize(serde.deserialize(value))));
            } else {
                TopicPartition partition = new TopicPartition("t", Integer.parseInt(words[2]));
                TopicIdPartition of = new TopicIdPartition(Uuid.fromString(words[1]), partition);
                System.out.println(
                    new RemoteLogMetadataTopicPartitioner(Integer.parseInt(words[3])).metadataPartition(of));
            }
        }
    }
}
