"""Server-side assignors: who of the members shall get which partitions. Pure, and the same for the same group.

spec.py            what an assignor is told
range.py           contiguous ranges of each topic
uniform.py         everybody as many as anybody, and as few moves as possible
overlapping.py     the same where members subscribe to different topics
"""
