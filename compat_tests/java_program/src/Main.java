import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs every case of the classes below against the broker at HOST:PORT, the first argument, and prints one JSON object a line for
 * each: {"case": NAME, "error": null or the stack trace}.
 */
public final class Main {
    private static final List<Class<?>> CASES =
        List.of(RecordCases.class, ProducerCases.class, LargeCases.class, SeekCases.class, ConsumerCases.class, AdminCases.class);

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        try (Broker broker = new Broker(arguments[0])) {
            for (Class<?> cases : CASES) {
                for (Method method : cases.getDeclaredMethods()) {
                    Case marked = method.getAnnotation(Case.class);
                    if (marked != null) {
                        Map<String, String> result = new LinkedHashMap<>();
                        result.put("case", marked.value());
                        result.put("error", run(method, broker));
                        System.out.println(json.writeValueAsString(result));
                    }
                }
            }
        }
        System.exit(0);
    }

    private static String run(Method method, Broker broker) throws IllegalAccessException {
        try {
            method.invoke(null, broker);
            return null;
        } catch (InvocationTargetException thrown) {
            StringWriter trace = new StringWriter();
            thrown.getCause().printStackTrace(new PrintWriter(trace));
            return trace.toString();
        }
    }
}
