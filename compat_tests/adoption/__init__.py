"""From Apache Kafka to kwire and back: a real broker's data directories, taken over and given back."""
