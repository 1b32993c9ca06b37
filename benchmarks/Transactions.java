import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Transactions BOOTSTRAP TOPIC RECORDS WARM_UP SECONDS: one producer, whose transactions have RECORDS records of 100 bytes.
 *
 * Says "warm" after WARM_UP transactions, which do not count, waits for a line, and prints how many transactions per
 * second it then committed in SECONDS seconds, and how many in all.
 */
final class Transactions {
    private Transactions() {
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int records = Integer.parseInt(arguments[2]);
        int warmUp = Integer.parseInt(arguments[3]);
        double seconds = Double.parseDouble(arguments[4]);
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "transactional.id", "java-benchmark", "linger.ms", 0);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (int i = 0; i < warmUp; i++) {
                one(producer, topic, records);
            }
            System.out.println("warm");
            System.in.read();
            long started = System.nanoTime();
            int count = 0;
            for (; System.nanoTime() - started < seconds * 1e9; count++) {
                one(producer, topic, records);
            }
            System.out.println(count / ((System.nanoTime() - started) / 1e9) + " " + count);
        }
    }

    private static void one(KafkaProducer<byte[], byte[]> producer, String topic, int records) {
        producer.beginTransaction();
        for (int i = 0; i < records; i++) {
            producer.send(new ProducerRecord<>(topic, new byte[100]));
        }
        // Else one in some twenty thousand transactions ends before its record is sent, which the broker refuses: the
        // client's sender looks whether records are left to send, and then takes what the application asked for since.
        producer.flush();
        producer.commitTransaction();
    }
}
