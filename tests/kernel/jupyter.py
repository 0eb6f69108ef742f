"""The real kernel under jupyter_client, and a client of our own that can also misbehave.

Runs in the environment .jupyter (made by ./dev test; LUNARIA_JUPYTER names another), whatever Python it is started with."""
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Not .resolve(): the interpreter of an environment is a link to the system's, and knows the environment by the link.
ENVIRONMENT = Path(os.environ.get("LUNARIA_JUPYTER", ROOT / ".jupyter")).absolute()
PYTHON = ENVIRONMENT / "bin" / "python3"
if Path(sys.prefix) != ENVIRONMENT:
    if not PYTHON.exists():
        sys.exit(f"no Jupyter environment at {ENVIRONMENT}: ./dev jupyter makes one, LUNARIA_JUPYTER names another")
    os.execv(PYTHON, [str(PYTHON), *sys.argv])

import hashlib
import hmac
import json
import queue
import signal
import subprocess
import tempfile
import time
import traceback
import uuid

import zmq
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

PROGRAM = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/lunaria")
PATIENCE = 20  # s; a test machine may be slow
CHANNELS = ("shell", "control", "stdin", "iopub", "hb")


def home():
    """A folder for Jupyter's files and the history, with the kernel installed under the name lunaria."""
    folder = tempfile.mkdtemp(prefix="lunaria-jupyter-")
    for name, below in (("HOME", "."), ("JUPYTER_DATA_DIR", "data"), ("JUPYTER_RUNTIME_DIR", "runtime"),
                        ("JUPYTER_CONFIG_DIR", "config"), ("XDG_STATE_HOME", "state"), ("IPYTHONDIR", "ipython")):
        os.environ[name] = os.path.normpath(os.path.join(folder, below))
    subprocess.run([PROGRAM, "kernel", "install", "--user"], check=True, stdout=subprocess.DEVNULL)
    return folder


HOME = home()


def interruptible(code):
    """ThreadSanitizer holds a signal back until the program next calls a library: there, empty loops ask for memory."""
    return code.replace("do end", "do local _ = {} end") if "TSAN_OPTIONS" in os.environ else code


class Cell:
    """What came of one request: reply, and the iopub messages up to idle."""

    def __init__(self, reply, messages):
        self.reply, self.messages = reply, messages
        self.content = reply["content"]
        self.status = self.content.get("status")

    def of(self, kind):
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    def text(self, name="stdout"):
        return "".join(c["text"] for c in self.of("stream") if c["name"] == name)

    def result(self, kind="text/plain"):
        found = self.of("execute_result")
        return found[0]["data"].get(kind) if found else None


class Kernel:
    """A kernel that jupyter_client started, with one client."""

    def __init__(self, name="lunaria", **options):
        self.log = tempfile.TemporaryFile()
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel(stderr=self.log, **options)
        self.client = self.connect()

    def connect(self):
        # Clients of one session would get each other's replies.
        client = self.manager.client(session=Session(key=self.manager.session.key))
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=False)

    @property
    def pid(self):
        return self.manager.provisioner.pid

    def is_alive(self):
        return self.manager.is_alive()

    def errors(self):
        """What the kernel has logged."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def send(self, code, client=None, **options):
        return (client or self.client).execute(interruptible(code), **options)

    def collect(self, request, client=None, timeout=PATIENCE):
        """Waits for idle and the reply of the request; messages of other requests on the way are dropped."""
        client = client or self.client
        messages = []
        while True:
            message = client.get_iopub_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            messages.append(message)
        while True:
            reply = client.get_shell_msg(timeout=timeout)
            if reply["parent_header"].get("msg_id") == request:
                return Cell(reply, messages)

    def wait_for(self, kind, request, timeout=PATIENCE):
        """The first message of that kind on the way to a request; those before it are dropped."""
        while True:
            message = self.client.get_iopub_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == kind:
                return message

    def skip_published(self):
        """Reads what was published so far, as a front end does all the time: who reads nothing for seconds loses messages."""
        try:
            while True:
                self.client.get_iopub_msg(timeout=0)
        except queue.Empty:
            pass

    def run(self, code, client=None, timeout=PATIENCE, **options):
        return self.collect(self.send(code, client, **options), client, timeout)

    def ask(self, method, *arguments, **options):
        """A request other than execute: complete, inspect, is_complete, history, comm_info, kernel_info."""
        return self.collect(getattr(self.client, method)(*arguments, **options))

    def control(self, kind, content=None, timeout=PATIENCE):
        """A request on the control channel; gives the content of its reply."""
        channel = self.client.control_channel
        message = self.client.session.msg(kind, content or {})
        channel.send(message)
        while True:
            reply = channel.get_msg(timeout=timeout)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return reply["content"]

    def still_works(self):
        same(self.run("6 * 7").result(), "42")


class RawClient:
    """Sends frames as it likes. The kernel that it speaks to is one of its own unless one is given."""

    def __init__(self, kernel, options=None):
        with open(kernel.manager.connection_file, encoding="utf-8") as file:
            self.info = json.load(file)
        self.session = uuid.uuid4().hex
        self.context = zmq.Context()
        self.sockets = {}
        for channel in CHANNELS:
            kind = {"iopub": zmq.SUB, "hb": zmq.REQ}.get(channel, zmq.DEALER)
            socket = self.context.socket(kind)
            socket.linger = 0
            for option, value in (options or {}).items():
                socket.setsockopt(option, value)
            if channel == "iopub":
                socket.setsockopt(zmq.SUBSCRIBE, b"")
            if kind == zmq.DEALER:
                socket.setsockopt(zmq.IDENTITY, self.session.encode())
            socket.connect(f"tcp://{self.info['ip']}:{self.info[channel + '_port']}")
            self.sockets[channel] = socket

    def close(self):
        self.context.destroy(linger=0)

    def header(self, kind):
        return {"msg_id": uuid.uuid4().hex, "session": self.session, "username": "test", "date": "2026-01-01T00:00:00Z",
                "msg_type": kind, "version": "5.3"}

    def sign(self, frames):
        digest = hmac.new(self.info["key"].encode(), digestmod=hashlib.sha256)
        for frame in frames:
            digest.update(frame)
        return digest.hexdigest().encode()

    def frames(self, header, content, parent=None, metadata=None):
        """Delimiter, signature and the four parts; each may be given as bytes."""
        parts = [p if isinstance(p, bytes) else json.dumps(p).encode()
                 for p in (header, {} if parent is None else parent, {} if metadata is None else metadata, content)]
        return [b"<IDS|MSG>", self.sign(parts), *parts]

    def send_frames(self, frames, channel="shell"):
        self.sockets[channel].send_multipart(frames)

    def send(self, kind, content, channel="shell", **options):
        header = self.header(kind)
        self.send_frames(self.frames(header, content, **options), channel)
        return header["msg_id"]

    def receive(self, channel="shell", timeout=PATIENCE):
        """The next message as a dictionary, or None when there is none in time."""
        socket = self.sockets[channel]
        if not socket.poll(timeout * 1000):
            return None
        frames = socket.recv_multipart()
        parts = [json.loads(frame) for frame in frames[frames.index(b"<IDS|MSG>") + 2:][:4]]
        return {"header": parts[0], "parent": parts[1], "metadata": parts[2], "content": parts[3]}

    def reply_to(self, request, channel="shell", timeout=PATIENCE):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            message = self.receive(channel, max(0.01, end - time.monotonic()))
            if message and message["parent"].get("msg_id") == request:
                return message
        return None


def memory_kb(pid):
    """Resident memory of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def same(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def holds(text, part):
    assert part in text, f"{part!r} is not in {text!r}"


def crowd():
    """How many times as long something takes where others compute as well."""
    return max(1, os.getloadavg()[0] / os.cpu_count())


def within(seconds, start, what):
    """An order of magnitude: where others compute as well, it takes as much longer as they are many."""
    took = time.monotonic() - start
    assert took < seconds * crowd(), f"{what} took {took:.2f} s"


class Gate:
    """A cell that runs `gate.wait` goes on when the gate is opened."""

    def __init__(self):
        self.path = os.path.join(tempfile.mkdtemp(prefix="lunaria-gate-"), "open")
        self.wait = f"os.execute('until [ -e {self.path} ]; do sleep 0.01; done')"

    def open(self):
        with open(self.path, "w", encoding="utf-8"):
            pass


def main(tests):
    """Runs the functions named test_*, those alone whose names contain a further argument; the names are sentences."""
    # Not what the shell that started the tests does with Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    passed = failed = 0
    for name, test in tests.items():
        if not name.startswith("test_") or not all(word in name for word in sys.argv[2:]):
            continue
        try:
            test()
            passed += 1
            print(f"ok {name[5:].replace('_', ' ')}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED {name[5:].replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
