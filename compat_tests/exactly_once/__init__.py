"""A pipeline that copies from topic to topic in transactions, while its broker and its workers are killed with -9."""
