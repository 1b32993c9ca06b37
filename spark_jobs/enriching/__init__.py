"""The commands of the job `enrich`."""
