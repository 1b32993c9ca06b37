import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Writes messages with Kafka's own classes.
 *
 * <p>Reads one JSON object a line, {"class": CLASS, "version": NUMBER, "fields": {...}}, and answers each with one line: the
 * bytes of that message in hex, as Kafka writes it outside of a request: an int16 of the version before it, or of the record
 * type before a coordinator's key, which is given without a version. Without fields it is the message as Java makes it.
 */
public final class MessageWriter {
    public static void main(String[] arguments) throws Exception {
        StreamReadConstraints noLimit = StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build();
        ObjectMapper json = JsonMapper.builder(JsonFactory.builder().streamReadConstraints(noLimit).build())
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .build();
        PrintStream output = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = json.readTree(line);
            boolean isKey = request.get("version").isNull();
            short version = isKey ? 0 : request.get("version").shortValue();
            String name = request.get("class").textValue();
            Object message = request.get("fields").isNull()
                ? Class.forName(name).getConstructor().newInstance()
                : Class.forName(name + "JsonConverter")
                    .getMethod("read", JsonNode.class, short.class)
                    .invoke(null, request.get("fields"), version);
            output.println(HexFormat.of().formatHex(isKey
                ? MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) message)
                : MessageUtil.toVersionPrefixedBytes(version, (Message) message)));
            output.flush();
        }
    }
}
