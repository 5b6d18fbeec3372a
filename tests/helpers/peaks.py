"""Peak memory, for programs that tests run in a process of their own."""

PEAK = '''
import resource
from pathlib import Path

def peak():
    """In KiB. Not that of getrusage, which after an exec is the parent's if that was larger."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])
'''
