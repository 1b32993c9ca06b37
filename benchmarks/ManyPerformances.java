import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.tools.ProducerPerformance;

/** For each line, whose words are tabs apart: Apache Kafka's ProducerPerformance with these arguments, then a line "end". */
final class ManyPerformances {
    private ManyPerformances() {
    }

    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ProducerPerformance.main(line.split("\t"));
            System.out.println("end");
        }
    }
}
