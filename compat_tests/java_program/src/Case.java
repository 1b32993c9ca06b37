import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** Marks a static method that takes a Broker and throws when something is wrong; the value is the name of its test. */
@Retention(RetentionPolicy.RUNTIME)
@interface Case {
    String value();
}
