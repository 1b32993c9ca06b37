import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/**
 * Runs every case of the classes below against the broker at HOST:PORT, the first argument, and prints one JSON object a line for
 * each: {"case": NAME, "error": null or the stack trace}.
 */
public final class Main {
    private static final List<Class<?>> CASES =
        List.of(RecordCases.class, ProducerCases.class, LargeCases.class, SeekCases.class, ConsumerCases.class, GroupCases.class,
            TransactionCases.class, AdminCases.class);

    /** The slowest case takes a few seconds. */
    private static final int LIMIT_SECONDS = 45;

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

    /** What went wrong, or null. A case that does not end is left behind, so that the others have their turn. */
    private static String run(Method method, Broker broker) throws InterruptedException {
        FutureTask<Object> task = new FutureTask<>(() -> method.invoke(null, broker));
        Thread thread = new Thread(task, method.getName());
        thread.setDaemon(true);
        thread.start();
        try {
            task.get(LIMIT_SECONDS, TimeUnit.SECONDS);
            return null;
        } catch (TimeoutException late) {
            String stack = Arrays.stream(thread.getStackTrace()).map(line -> "\n\tat " + line).collect(Collectors.joining());
            return "did not end within " + LIMIT_SECONDS + " s" + stack;
        } catch (ExecutionException failed) {
            StringWriter trace = new StringWriter();
            failed.getCause().getCause().printStackTrace(new PrintWriter(trace));
            return trace.toString();
        }
    }
}
