"""Taking over the data directories of an Apache Kafka broker (KRaft), and giving topics back to one.

state         what the records of __cluster_metadata add up to
controller    reading them: the newest snapshot, and the log after it
source        the log dirs of the broker: whose, how they were left, which partitions
metadata      the image for kwire, and what of the cluster has no place in it
marks         what an import says in each dir that it fills
moved         what a move says in each dir that it takes from
targets       the dirs that it is to fill
plan          what goes where, decided before anything is touched
room          whether a copy has room
carrying      doing it, so that a half of it never serves
report        what came over and what did not
returning     giving topics back, and epochs: what changes in their batches on the way

taking        from the names of dirs to a plan

plan = plan_import(files, paths, targets, Mode.COPY, skip_incomplete=False)
carry_out(files, plan, randomness.uuid, advance)
"""


class AdoptionError(Exception):
    """It can't be done; one line that says why and what to do."""
