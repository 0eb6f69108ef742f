"""Whether the machine does anything else while it is measured."""
import os
import time

TICK = 1 / os.sysconf("SC_CLK_TCK")


def all_seconds():
    """What all processors have worked so far, for whomever: in steps of a hundredth. Stolen time is somebody's work, too."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, stat.readline().split()[1:9])
    return (user + nice + system + interrupts + soft_interrupts + stolen) * TICK


def seconds_of(process):
    """Processor time of all threads of a process, to the nanosecond; 0 when it is gone."""
    try:
        return time.clock_gettime(~process << 3 | 2)  # as clock_getcpuclockid makes it
    except OSError:
        return 0.0


class Watch:
    """From its making on: whether others than this process worked."""

    def __init__(self, process):
        self.process = process
        self.before = time.monotonic(), all_seconds(), seconds_of(process)

    def is_undisturbed(self):
        now = time.monotonic(), all_seconds(), seconds_of(self.process)
        wall, everybody, own = (after - before for after, before in zip(now, self.before))
        # Two processors may each be a step behind or ahead.
        return everybody - own < 2.5 * TICK + 0.05 * wall


def wait_until_idle(processes, most=0.5):
    """Until none of the processes does anything, not even wait for work in a loop."""
    end = time.monotonic() + most
    while True:
        before = sum(map(seconds_of, processes))
        time.sleep(0.01)
        if sum(map(seconds_of, processes)) - before < 0.001 or time.monotonic() > end:
            return
