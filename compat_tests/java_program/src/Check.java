import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;

/** What a case expects. */
final class Check {
    private Check() {
    }

    static void equal(Object expected, Object got, String what) {
        if (!Objects.equals(expected, got)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + got);
        }
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** The exception that the action fails with, taken out of its ExecutionException; it must be of this type. */
    static <T extends Throwable> T fails(Class<T> type, Callable<?> action) throws Exception {
        Object got;
        try {
            got = action.call();
        } catch (ExecutionException | RuntimeException thrown) {
            Throwable error = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            if (!type.isInstance(error)) {
                throw new AssertionError("expected " + type.getSimpleName() + ", got " + error, error);
            }
            return type.cast(error);
        }
        throw new AssertionError("expected " + type.getSimpleName() + ", got " + got);
    }
}
