"""Every fault of a network at every endpoint of a federated job over real sockets: plain updates, pairwise masks (also with signed lists),
stable masks. A fault that passes leaves the bits of the model as they are without it; one that does not ends the iteration, within one
window, by a reason that the server or the clients tell, and the model is whole: that before the iteration or that after it.

A day has a fortieth of the cells, other ones each day; --long has all.

usage: network_faults_test.py LUNARIA [--long] [WORD...]     only the cells whose names have all the words"""
import datetime
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from certificates import Authority
from job import Job
from proxy import Proxy

LUNARIA = sys.argv[1]
DAYS = 40
TOGETHER = 6  # jobs that run beside each other: they mostly wait
WINDOW, GRACE = 4, 5  # seconds
ENDPOINTS = {
    "plain": ["startFLJob", "updateModel", "getModel"],
    "pairwise": ["startFLJob", "exchangeKeys", "getKeys", "shareSecrets", "getSecrets", "updateModel", "getClientList",
                 "reconstructSecrets", "getModel"],
    "signed": ["startFLJob", "exchangeKeys", "getKeys", "shareSecrets", "getSecrets", "updateModel", "getClientList", "pushListSign",
               "getListSign", "reconstructSecrets", "getModel"],
    "stable": ["startFLJob", "exchangeKeys", "getKeys", "updateModel", "getModel"],
}
ENCRYPT = {"plain": "NOT_ENCRYPT", "pairwise": "PW_ENCRYPT", "signed": "PW_ENCRYPT", "stable": "STABLE_PW_ENCRYPT"}
# Of those that never end: after which no message comes through.
FATAL = ["lose_request", "lose_reply", "alter_request", "alter_reply", "cut_request", "cut_reply", "reset_request", "reset_reply",
         "half_close_reply"]
FOR_GOOD = 1 << 30


def cells(protocols):
    """(protocol, endpoint, fault, whether it never ends) of all, in an order in which neighbours have little in common."""
    found = [(protocol, endpoint, fault, False) for protocol in protocols for endpoint in ENDPOINTS[protocol] for fault in Proxy.FAULTS]
    found += [(protocol, endpoint, fault, True) for protocol in protocols for endpoint in ENDPOINTS[protocol] for fault in FATAL]
    random.Random(40).shuffle(found)
    return found


def name_of(cell):
    protocol, endpoint, fault, for_good = cell
    return f"{protocol}: {fault} of {endpoint}{', for good' if for_good else ''}"


class Failure(Exception):
    pass


class Jobs:
    """The jobs of all cells, and what they give without faults."""

    def __init__(self, authority):
        self.authority = authority
        self.expected = {}

    def job(self, protocol, iterations, faults=(), window=60):
        return Job(LUNARIA, ENCRYPT[protocol], faults, iterations=iterations, window=window,
                   authority=self.authority if protocol == "signed" else None)

    def without_faults(self, protocol):
        """The bits of the model after each number of iterations."""
        for iterations in [1, 3]:
            with self.job(protocol, iterations) as job:
                bits = job.run(180)
                if bits is None or job.logs().count(f"{iterations} updates were taken") != 3:
                    raise Failure(f"{protocol}, {iterations} iterations without faults\n{job.logs()}")
                self.expected[protocol, iterations] = bits

    def passing(self, protocol, endpoint, fault):
        """Two requests of the endpoint have the fault, from the fourth one on: others were answered before."""
        with self.job(protocol, 3, [[endpoint, fault, 2, 4]]) as job:
            job.wait_until_open()
            bits = job.run(180)
            if len(job.proxy.done) != 2:
                raise Failure(f"it happened {len(job.proxy.done)} times, not 2\n{job.logs()}")
            if bits != self.expected[protocol, 3]:
                raise Failure(f"the model has other bits\n{job.logs()}")
            return "same bits"

    def for_good(self, protocol, endpoint, fault):
        """The job has one iteration."""
        with self.job(protocol, 1, [[endpoint, fault, FOR_GOOD]], WINDOW) as job:
            job.wait_until_open()
            for number in [1, 2, 3]:
                job.start_client(number)
            end = time.time() + 60
            while any(client.poll() is None for client in job.clients.values()) and time.time() < end:
                time.sleep(0.05)
            if any(client.poll() is None for client in job.clients.values()):
                raise Failure(f"a client does not end\n{job.logs()}")
            reasons = [(job.path / f"{number}.log").read_text(errors="replace") for number in [1, 2, 3] if job.clients[number].poll()]
            if any("federated.Client: " not in reason for reason in reasons):
                raise Failure(f"a client has failed without a word\n{job.logs()}")
            if not job.proxy.done:
                raise Failure(f"it did not happen\n{job.logs()}")
            if not (job.path / "metrics.json").exists() and len(reasons) == 3:
                return "every client tells an error"
            job.server.wait(max(1.0, end - time.time()))
            if job.model() == self.expected[protocol, 1]:
                return "same bits"
            return self.named(job)

    def named(self, job):
        """The iteration has failed, for a reason that the server tells, within a window, and the model is as before."""
        if job.model() != job.model("begin"):
            raise Failure(f"the model is neither that before the iteration nor that after it\n{job.logs()}")
        file = job.path / "failures.json"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        reason = rows and rows[0].get("reason")
        if not reason:
            raise Failure(f"the server gives no reason: {rows}\n{job.logs()}")
        late = file.stat().st_mtime - job.proxy.began - WINDOW
        if late > GRACE:
            raise Failure(f"the iteration failed {late:.1f} s after its window\n{job.logs()}")
        return reason

    def run(self, cell):
        protocol, endpoint, fault, for_good = cell
        try:
            return cell, (self.for_good if for_good else self.passing)(protocol, endpoint, fault), None
        except (Failure, subprocess.TimeoutExpired) as failure:
            return cell, None, str(failure)


def main():
    words = [word for word in sys.argv[2:] if word != "--long"]
    with tempfile.TemporaryDirectory() as folder:
        protocols, authority = ["plain", "pairwise", "stable"], None
        if shutil.which("openssl"):
            protocols.append("signed")
            authority = Authority(Path(folder))
            for number in [1, 2, 3]:
                _, key = authority.issue(f"client-{number}", kind="ed25519")
                (authority.folder / f"client-{number}.seed").write_bytes(authority.seed(key))
        every = cells(protocols)
        chosen = [cell for cell in every if all(word in name_of(cell) for word in words)]
        if "--long" not in sys.argv and not words:
            chosen = chosen[datetime.date.today().toordinal() % DAYS::DAYS]
        jobs, outcomes, failed = Jobs(authority), {}, 0
        with ThreadPoolExecutor(TOGETHER) as pool:
            list(pool.map(jobs.without_faults, sorted({cell[0] for cell in chosen})))
            again = []
            for cell, outcome, problem in pool.map(jobs.run, chosen):
                print(f"{'once more' if problem else 'ok'} {name_of(cell)}: {problem or outcome}", flush=True)
                if problem:
                    again.append(cell)
                else:
                    outcomes[outcome] = outcomes.get(outcome, 0) + 1
        # On a busy machine, windows pass while a program waits for a processor: what has failed is tried once more, alone.
        for cell, outcome, problem in map(jobs.run, again):
            print(f"{'FAILED' if problem else 'ok'} {name_of(cell)}: {problem or outcome}", flush=True)
            failed += bool(problem)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        for outcome, count in sorted(outcomes.items(), key=lambda row: -row[1]):
            print(f"{count:4} {outcome or 'failed'}")
        print(f"{len(chosen) - failed} passed, {failed} failed, of {len(every)} cells")
        sys.exit(failed > 0 or not chosen)


try:
    main()
except Failure as failure:
    sys.exit(str(failure))
