"""Federated jobs over real sockets under faults: servers and clients that are killed at any phase, full disks, clocks that are wrong,
updates that are no numbers, and all faults of the network in one job (network_faults_test.py has each at each endpoint). A job ends with
the same bits of its model as without the fault, or with a named error within one window.

usage: faults_test.py LUNARIA [--long]"""
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from certificates import Authority
from job import HERE, Job
from proxy import Proxy

sys.path.insert(0, str(HERE.parent / "check"))
from today import is_of_today

LUNARIA = sys.argv[1]
PLAIN = ["startFLJob", "updateModel", "getModel"]
SECURE = ["startFLJob", "exchangeKeys", "getKeys", "shareSecrets", "getSecrets", "updateModel", "getClientList", "reconstructSecrets",
          "getModel"]
STABLE = ["startFLJob", "exchangeKeys", "getKeys", "updateModel", "getModel"]
passed = 0


def check(name, condition, job):
    global passed
    if not condition:
        sys.exit(f"{name}: failed\n{job.logs()}")
    passed += 1
    print(f"ok {name}", flush=True)


def compared(name, expected, encrypt="NOT_ENCRYPT", faults=(), before=None, authority=None):
    with Job(LUNARIA, encrypt, faults, authority=authority) as job:
        if before:
            before(job)
        check(name, job.run() == expected, job)
        if faults:
            check(f"{name}: it happened", len(job.proxy.done) == sum(f[2] for f in faults), job)


def reference(encrypt="NOT_ENCRYPT"):
    with Job(LUNARIA, encrypt) as job:
        bits = job.run()
        check(f"a job with {encrypt}", bits is not None and job.logs().count("3 updates were taken") == 3, job)
        return bits


def once_at(endpoint, which, do):
    """Calls do(job) when the request with this number comes to the endpoint, before it is passed on."""
    def before(job):
        lock, seen = threading.Lock(), [0]

        def on_request(name):
            with lock:
                if name != endpoint:
                    return
                seen[0] += 1
                if seen[0] == which:
                    do(job)
        job.proxy.on_request = on_request
    return before


def kill_client(number):
    return lambda job: job.kill_client(number)


def kills(endpoints, encrypt, expected):
    for endpoint in endpoints:
        compared(f"{encrypt}: kill -9 of the server at {endpoint}", expected, encrypt, before=once_at(endpoint, 2, Job.kill_server))
        compared(f"{encrypt}: kill -9 of a client at {endpoint}", expected, encrypt, before=once_at(endpoint, 2, kill_client(2)))


def refusals():
    """Faults after which there cannot be the same model: a named error, soon."""
    started = time.time()
    with Job(LUNARIA) as job:
        job.start_client(1, party=["nan"])
        check("an update that is no number", job.clients[1].wait(30) != 0 and "holds nan or infinity" in job.logs(), job)
    with Job(LUNARIA) as job:
        job.most_file = 600
        job.start_client(1, "--quiet")
        job.most_file = None
        job.start_client(2)
        job.start_client(3)
        check("a full disk of a client", job.clients[1].wait(30) != 0 and "1.state: writing failed: File too large" in job.logs(), job)
    with Job(LUNARIA) as job:
        job.start_client(1, "--fl-name", "another", "--patience", "3")
        check("a job that is not there", job.clients[1].wait(30) != 0 and "there is no such job" in job.logs(), job)
    check("within one window", time.time() - started < 60, job)


def full_server_disk(expected):
    for endpoint, which in [("startFLJob", 3), ("updateModel", 2), ("getModel", 1)]:
        with Job(LUNARIA) as job:
            once_at(endpoint, which, lambda job: job.fill_disk(1.5))(job)
            check(f"a full disk of the server at {endpoint}", job.run() == expected, job)
            check(f"a full disk of the server at {endpoint}: it happened", re.search("taken, [1-9]", job.logs()), job)


def clock_skew(expected):
    """A client whose clock is a day ahead, and one a day behind."""
    with Job(LUNARIA) as job:
        def skewed(number):
            script = (f'local core = require "lunaria.federated_client_core" local open = core.open '
                      f'core.open = function(o) o.clock_skew = {86_400_000 * (-1) ** number} return open(o) end '
                      f'require("lunaria.federated.client_command").run(arg)')
            path = job.path / f"skewed-{number}.lua"
            path.write_text(script)
            return [LUNARIA, str(path)]
        original = job.launch
        job.launch = lambda number, command: original(number, skewed(number) + command[3:])
        check("clocks that are a day off", job.run() == expected, job)


def signed(expected, folder, faults=()):
    """Clients that sign what they send, with certificates of an authority: signed lists of participants."""
    authority = Authority(Path(folder))
    for number in [1, 2, 3]:
        _, key = authority.issue(f"client-{number}", kind="ed25519")
        (authority.folder / f"client-{number}.seed").write_bytes(authority.seed(key))
    compared("signed secure aggregation", expected, "PW_ENCRYPT", faults, authority=authority)
    # A certificate of another name, and one of another authority.
    with Job(LUNARIA, "PW_ENCRYPT", authority=authority) as job:
        job.start_client(1, "--client-id", "client-2")
        check("another's name", job.clients[1].wait(30) != 0 and "certificate has another name" in job.logs(), job)
    other = Authority(Path(folder), "other")
    _, key = other.issue("client-1", kind="ed25519")
    (other.folder / "client-1.seed").write_bytes(other.seed(key))
    with Job(LUNARIA, "PW_ENCRYPT", authority=authority) as job:
        job.authority = other
        job.start_client(1)
        check("another authority", job.clients[1].wait(30) != 0 and "the client's certificate is refused" in job.logs(), job)


def in_graph_mode(job):
    start = job.start_client
    job.start_client = lambda number, *words, **options: start(number, "--graph", *words, **options)


def graph_mode():
    with Job(LUNARIA) as job:
        in_graph_mode(job)
        expected = job.run()
        check("a job in graph mode", expected is not None, job)
    for endpoint in PLAIN:
        def before(job, endpoint=endpoint):
            in_graph_mode(job)
            once_at(endpoint, 5, kill_client(2))(job)
        compared(f"graph mode: kill -9 of a client at {endpoint}", expected, before=before)


def main():
    if "--long" not in sys.argv:
        # Every fault once, spread over the requests: one day of plain updates, the next day of masked ones.
        if is_of_today(0, 2):
            expected = reference()
            everything = [[PLAIN[i % 3], fault, 1] for i, fault in enumerate(Proxy.FAULTS)]
            compared("every fault of the network in one job", expected, faults=everything)
            compared("kill -9 of the server at updateModel", expected, before=once_at("updateModel", 2, Job.kill_server))
        if is_of_today(1, 2):
            secure = reference("PW_ENCRYPT")
            faults = [[SECURE[i % 9], fault, 1] for i, fault in enumerate(Proxy.FAULTS)]
            compared("every fault of the network with secure aggregation", secure, "PW_ENCRYPT", faults)
            compared("kill -9 of a client at shareSecrets", secure, "PW_ENCRYPT", before=once_at("shareSecrets", 2, kill_client(1)))
            if shutil.which("openssl"):
                with tempfile.TemporaryDirectory() as folder:
                    signed(secure, folder)
        refusals()
        return
    expected = reference()
    clock_skew(expected)
    graph_mode()
    full_server_disk(expected)
    for encrypt, endpoints in [("NOT_ENCRYPT", PLAIN), ("PW_ENCRYPT", SECURE), ("STABLE_PW_ENCRYPT", STABLE)]:
        expected = reference(encrypt)
        kills(endpoints, encrypt, expected)


main()
print(f"{passed} passed, 0 failed")
