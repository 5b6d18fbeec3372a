"""Jobs one after another in this very process: for debuggers, and for jobs shorter than a process's start."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from firststep.jobs.job import Job, Tell
from firststep.jobs.work import carry_out


class HereExecutor:
    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        for job in jobs:
            tell(carry_out(job, tell, torch.get_num_threads()))
