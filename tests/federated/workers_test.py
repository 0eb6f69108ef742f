"""Workers of silos, as callbacks of Model.train: they end with the job's model, which is that of clients with the same data; with adaptive
synchronisation the interval becomes shorter.

usage: workers_test.py LUNARIA"""
import struct
import sys

from job import HERE, Job

LUNARIA = sys.argv[1]
ITERATIONS = 3


class Workers(Job):
    def __init__(self, *words):
        self.words = words
        super().__init__(LUNARIA, clients=2, iterations=ITERATIONS)

    def start_client(self, number, *_):
        self.launch(number, [LUNARIA, str(HERE / "worker.lua"), str(self.proxy.port), str(number), *self.words])


def weights(job, number):
    text = (job.path / f"{number}.log").read_text()
    lines = [line for line in text.splitlines() if line.startswith("weights ")]
    if not lines:
        sys.exit(f"worker {number} did not end:\n{job.logs()}")
    return text, [float.fromhex(word) for word in lines[0].split()[1:]]


def main():
    # The clients' updates count by their rows, of which all have 24, as those of the workers do.
    with Job(LUNARIA, clients=2, iterations=ITERATIONS) as job:
        expected = job.run()
    expected = struct.unpack(f"<{len(expected) // 8}d", expected)
    with Workers("2", "fixed", "3") as job:
        if not job.run():
            sys.exit(f"the job did not end\n{job.logs()}")
        for number in [1, 2]:
            text, got = weights(job, number)
            if "interval 2, ended true" not in text:
                sys.exit(text)
            if max(abs(a - b) for a, b in zip(got, expected)) > 1e-6:
                sys.exit(f"worker {number} has other weights than the job of clients")
    with Workers("3", "adaptive", "3") as job:
        job.run()
        texts = [weights(job, number) for number in [1, 2]]
        if "interval 1, ended true" not in texts[0][0] or texts[0][1] != texts[1][1]:
            sys.exit(job.logs())
    print("3 passed, 0 failed")


main()
