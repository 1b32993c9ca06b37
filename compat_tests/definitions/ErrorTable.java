import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints every error of the protocol, one a line: its code, its name, and whether Kafka's clients may retry after it. */
public final class ErrorTable {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            System.out.printf("%d %s %b%n", error.code(), error.name(), error.exception() instanceof RetriableException);
        }
    }
}
