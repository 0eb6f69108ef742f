"""A federated job for tests: a server, a proxy before it, and clients, all of them programs of their own."""
import os
import random
import resource
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from proxy import Proxy

HERE = Path(__file__).resolve().parent


def free_port():
    """A port that neither connections nor listeners without a wish of their own are given, so that it is free until the server takes it."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Job:
    """window: seconds of each phase but the first, for which clients also repeat a request."""

    def __init__(self, lunaria, encrypt="NOT_ENCRYPT", faults=(), clients=3, iterations=3, authority=None, window=60):
        self.lunaria, self.encrypt, self.count, self.iterations, self.window = lunaria, encrypt, clients, iterations, window
        self.authority, self.most_file = authority, None
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.port = free_port()
        self.server, self.clients = None, {}
        self.proxy = Proxy(self.port, faults, delay=0.5)
        self.start_server()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [self.server, *self.clients.values()]:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.proxy.close()
        self.folder.cleanup()

    def start(self, log, command):
        environment = {**os.environ, "LUNARIA_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        with open(self.path / f"{log}.log", "ab") as file:
            # A disk that is full: files end there, with an error instead of a signal.
            limit = self.most_file or resource.RLIM_INFINITY
            return subprocess.Popen(command, stdout=file, stderr=file, env=environment, restore_signals=False,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)))

    def fill_disk(self, seconds):
        """The server's files cannot grow for some time."""
        process = self.server.pid
        resource.prlimit(process, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        threading.Timer(seconds, resource.prlimit, [process, resource.RLIMIT_FSIZE,
                                                    (resource.RLIM_INFINITY, resource.RLIM_INFINITY)]).start()

    def start_server(self):
        self.server = self.start("server", [self.lunaria, str(HERE / "server.lua"), str(self.port), str(self.path), str(self.iterations),
                                            str(self.count), self.encrypt, str(self.window),
                                            *([str(self.authority.certificate)] if self.authority else [])])

    def launch(self, number, command):
        self.clients[number] = self.start(number, command)

    def start_client(self, number, *words, party=()):
        if self.authority:
            party = ["signed", str(self.authority.folder)]
        self.launch(number, [self.lunaria, "federated", "client", str(HERE / "party.lua"), "--url", f"http://127.0.0.1:{self.proxy.port}",
                             "--fl-name", "faults", "--client-id", f"client-{number}", "--state", str(self.path / f"{number}.state"),
                             "--patience", str(min(self.window, 20)), "--seed", str(number), *words, "--", str(number), *party])

    def kill_server(self, pause=0.2):
        self.server.kill()
        self.server.wait()
        time.sleep(pause)
        self.start_server()

    def kill_client(self, number):
        self.clients[number].kill()
        self.clients[number].wait()
        self.start_client(number)

    def wait_until_open(self, seconds=60):
        """Until the server takes connections."""
        end = time.time() + seconds
        while time.time() < end and self.server.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)

    def run(self, seconds=90):
        """The bits of the final model; None where the job did not end."""
        for number in range(1, self.count + 1):
            self.start_client(number)
        end = time.time() + seconds
        while time.time() < end and (self.server.poll() is None or any(c.poll() is None for c in self.clients.values())):
            if all(c.poll() not in (None, 0) for c in self.clients.values()):
                break
            time.sleep(0.05)
        return self.model()

    def model(self, name="model"):
        file = self.path / f"{name}.bin"
        return file.read_bytes() if file.exists() else None

    def logs(self):
        return "".join(f"-- {path.name}\n{path.read_text(errors='replace')}" for path in sorted(self.path.glob("*.log")))
