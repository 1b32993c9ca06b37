import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of stock tools one after the other in one JVM, as if each had a process of its own.
 *
 * <p>Reads one JSON object a line, {"main": CLASS, "arguments": [...], "input": TEXT}, and answers each with one line,
 * {"exit": CODE, "output": TEXT, "errors": TEXT}. Arguments: the jars that hold the tools; the class path has everything else.
 * Each run loads the tools' classes anew, since some of them count in static fields, and runs the shutdown hooks they added.
 */
public final class ToolRunner {
    /** A tool's input may be larger than what the library takes by default. */
    private static final StreamReadConstraints NO_LIMIT =
        StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build();

    private final ObjectMapper json =
        new ObjectMapper(JsonFactory.builder().streamReadConstraints(NO_LIMIT).build());
    private final PrintStream output = System.out;
    private final PrintStream errors = System.err;
    private final URL[] toolJars;
    private final List<Runnable> shutdownHooks = new CopyOnWriteArrayList<>();
    private CompletableFuture<Integer> exitCode;

    private ToolRunner(URL[] toolJars) {
        this.toolJars = toolJars;
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> shutdownHooks.add(hook));
    }

    public static void main(String[] jars) throws Exception {
        URL[] urls = new URL[jars.length];
        for (int i = 0; i < jars.length; i++) {
            urls[i] = new File(jars[i]).toURI().toURL();
        }
        new ToolRunner(urls).serve();
    }

    private void serve() throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            output.write(json.writeValueAsBytes(run(json.readTree(line))));
            output.write('\n');
            output.flush();
        }
        System.exit(0);
    }

    private ObjectNode run(JsonNode request) throws Exception {
        List<String> arguments = new ArrayList<>();
        request.get("arguments").forEach(argument -> arguments.add(argument.asText()));
        ByteArrayOutputStream toolOutput = new ByteArrayOutputStream();
        ByteArrayOutputStream toolErrors = new ByteArrayOutputStream();
        exitCode = new CompletableFuture<>();
        shutdownHooks.clear();
        System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(toolOutput, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(toolErrors, true, StandardCharsets.UTF_8));
        ObjectNode answer = json.createObjectNode();
        try (URLClassLoader loader = new URLClassLoader(toolJars, ToolRunner.class.getClassLoader())) {
            String main = request.get("main").asText();
            Thread tool = new Thread(() -> call(loader, main, arguments.toArray(new String[0])), main);
            tool.setDaemon(true);
            tool.setContextClassLoader(loader);
            tool.start();
            answer.put("exit", exitCode.get());
            for (Runnable hook : shutdownHooks) {
                hook.run();
            }
        } finally {
            System.setOut(output);
            System.setErr(errors);
        }
        answer.put("output", toolOutput.toString(StandardCharsets.UTF_8));
        answer.put("errors", toolErrors.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private void call(ClassLoader loader, String main, String[] arguments) {
        try {
            loader.loadClass(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
            exitCode.complete(0);
        } catch (InvocationTargetException thrown) {
            // What the JVM does with an exception that leaves main.
            thrown.getCause().printStackTrace();
            exitCode.complete(1);
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            exitCode.complete(1);
        }
    }

    /** Where a tool would end its process, its thread stops for good: nothing that follows the call may run. */
    private void exit(int code) {
        exitCode.complete(code);
        while (true) {
            LockSupport.park();
        }
    }
}
