"""A disk with a page cache in front of it, in memory: what a kill, a power cut or a failing device leaves.

       system calls ──> the page cache ──> the disk
                        what a process     what is there
                        sees               after a power cut

    writes, truncations    content.py    go to the disk with a sync of the file, or whenever the system likes
    names                  names.py      creations, renames and removals, likewise
    the file system        disk.py       both together, as a `FileSystem`
    what goes wrong        faults.py     at which call: an error, a write of a part, a sync that does nothing, the end

Everything that is left to chance comes from a seed. Two kinds of file system decide what may be left (`Order`).
"""

from kwire.ports.simulated_disk.disk import SimulatedDisk
from kwire.ports.simulated_disk.faults import Call, Effect, Killed, chance, fail_at, kill_at, once
from kwire.ports.simulated_disk.order import Order

__all__ = ["Call", "Effect", "Killed", "Order", "SimulatedDisk", "chance", "fail_at", "kill_at", "once"]
