"""What `audit` is made of: offsets from the brokers, counts from Spark, what they mean, plots, the page."""
