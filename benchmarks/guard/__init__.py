"""What a request costs the broker in things that can be counted: the same on each machine, however busy it is."""
