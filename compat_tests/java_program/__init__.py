"""A Java program with the stock producer, assigned consumer and admin client of Apache Kafka."""
