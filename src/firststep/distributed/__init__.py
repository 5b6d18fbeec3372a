"""One run on many processes: who they are, what each does, and how their results come together."""

from firststep.distributed.launch import BACKENDS, join, launched
from firststep.distributed.team import Team

__all__ = ["BACKENDS", "Team", "join", "launched"]
