"""One run on several processes: joining them, sharding the work, and combining the results."""

from firststep.distributed.launch import BACKENDS, join, launched
from firststep.distributed.team import Team

__all__ = ["BACKENDS", "Team", "join", "launched"]
