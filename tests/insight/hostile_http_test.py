"""Hostile requests to the server of insight over sockets: requests that make sense are changed, cut, joined and followed by what no
client sends. The server goes on, its answers are HTTP, it answers 403 to a Host or Origin of others, gives nothing from outside of its
folder, and keeps its memory.

usage: hostile_http_test.py LUNARIA REQUESTS [SEED]"""
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

SECRET = b"what lies outside of the folder"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")
STATUSES = {100, 200, 204, 206, 304, 400, 403, 404, 405, 408, 411, 413, 414, 415, 416, 417, 431, 501, 503, 505}
MOST_MEMORY = 256  # MB beside what the server begins with
PATIENCE = 120  # s: a busy machine is slow, but it answers
CLIENTS = 4
ODD = [b"\0", b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"%00", b"%", b"%zz", b"%2e%2e%2f", b"../", b"..\\", b"//", b"\xff\xfe", b"\xc0\xae", b"?", b"#", b"&", b"=", b";",
       b"<img src=x onerror=1>", b"A" * 300, b"{{", b"-1", b"99999999999999999999", b"1e999", b"nan"]
METHODS = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"TRACE", b"PRI", b"get", b"", b"G\0T", b"X" * 5000]
VERSIONS = [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9999.1", b"http/1.1", b"HTTP/1.1 more", b""]
HEADERS = [b"Content-Length: -1", b"Content-Length: 18446744073709551616", b"Content-Length: 5\r\nContent-Length: 9", b"Content-Length: 0x10", b"Content-Length: ",
           b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nContent-Length: 4", b"Transfer-Encoding: gzip, chunked", b"Range: bytes=0-", b"Range: bytes=-1,5-2,",
           b"Range: bytes=99999999999999999999-", b"Range: bytes=" + b"0-1," * 1500, b"Accept-Encoding: gzip;q=nan, *;q=-1", b"Expect: 100-continue", b"Expect: the unexpected",
           b"Connection: close", b"Connection: upgrade\r\nUpgrade: websocket", b"Cookie: " + b"a=b; " * 1600, b"If-None-Match: *", b" folded: header", b"no colon", b": no name",
           b"Content-Type: multipart/form-data; boundary=", b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 20", b"Content-Type: application/json",
           b"Content-Encoding: gzip", b"X: " + b"y" * 9000, b"\r\n".join(b"H%d: x" % i for i in range(300)), b"Authorization: Basic " + b"=" * 40, b"\0: \0"]
BODIES = [b"", b"{}", b"[" * 3000, b"{\"notes\": 3}", b"{\"notes\": \"\\ud800\"}", b"{\"train_ids\": [null]}", b"{\"limit\": 1e999, \"offset\": -1}", b"5\r\nhello\r\n0\r\n\r\n", b"fffffffffffffffff\r\nx",
          b"-5\r\nx\r\n", b"5;ext=\"\r\nhello", b"\x1f\x8b\x08\0\0\0\0\0", b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n", b"\0" * 500, b"{\"loss\": {\"lt\": \"x\", \"in\": 4}}"]
FOREIGN = [b"evil.example", b"127.0.0.1.evil.example", b"evil.example:80", b"127.0.0.1@evil.example", b"[::2]", b"0x7f000001.evil", b"localhost.evil.example"]
OUTSIDE = ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/a/../../secret.txt", "/%2e%2e%5csecret.txt", "/link/secret.txt", "/runs/link.txt", "//secret.txt", "/secret.txt%00.js",
           "/v1/lunaria/runs/..%2f..%2fsecret.txt/tags", "/....//secret.txt", "/v1/mindinsight/datavisual/plugins?train_id=./../outside", "/.%00./secret.txt"]


def write_runs(folder):
    """A run, and beside the base folder what is to stay there, with links to it."""
    base = folder / "runs"
    (base / "first").mkdir(parents=True)
    (folder / "secret.txt").write_bytes(SECRET)
    (base / "link").symlink_to(folder)
    (base / "link.txt").symlink_to(folder / "secret.txt")
    graph = Path(__file__).resolve().parents[1] / "core/insight/graphs/lenet.pb"
    (base / "first/lenet.pb").write_bytes(graph.read_bytes())
    return base


PROGRAM = """
local ms = require "lunaria"
local folder = arg[1]
local record = ms.train.SummaryRecord(folder .. "/first")
for step = 0, 3 do
  record:add_value("scalar", "loss", 1.0 / (step + 1))
  record:add_value("image", "picture", ms.ops.sigmoid(ms.ops.randn(1, 8, 8)))
  record:add_value("tensor", "weights", ms.ops.randn(3, 4))
  record:add_value("histogram", "values", ms.ops.randn(30))
  record:record(step)
end
record:close()
ms.profile(function() return ms.ops.matmul(ms.ops.randn(3, 3), ms.ops.randn(3, 3)) end):save(folder .. "/first/trace.json")
local server = ms.insight.start { dir = folder, port = 0, interval = 0 }
print(server.url)
io.stdout:flush()
io.read()
"""


def addresses(url):
    """All that can be asked of the run."""
    def read(path):
        with urllib.request.urlopen(url + path, timeout=PATIENCE) as answer:
            return json.load(answer)
    run = read("v1/lunaria/runs")["runs"][0]["id"]
    below = f"v1/lunaria/runs/{run}"
    graph = read(f"{below}/graphs")[0]["id"]
    found = ["", "app.js", "v1/lunaria/runs", below, f"{below}/tags", f"{below}/graphs", f"{below}/lineage", f"{below}/profile", "v1/lunaria/system", "v1/lunaria/importance", "v1/lunaria/debug"]
    for kind, tags in read(f"{below}/tags").items():
        for tag in tags:
            at = f"{below}/{kind}/{tag['id']}"
            found += [at, f"{at}/0", f"{at}?points=3&axis=relative&from=0&to=9", f"{at}/0?dims=0,:&format=csv"]
    found += [f"{below}/profile/{trace['id']}" for trace in read(f"{below}/profile")["traces"]]
    found += [f"v1/lunaria/graphs/{graph}/{what}" for what in ("view?open=all", "svg?open=all", "find?text=conv", "parts", "node/3")]
    job = "train_id=./first"
    reference = ["train-jobs?offset=0&limit=9", f"single-job?plugin_name=scalar&{job}", f"plugins?{job}", f"scalar/metadata?{job}&tag=loss", f"scalars?{job}&tag=loss", f"image/metadata?{job}&tag=picture",
                 f"image/single-image?{job}&tag=picture&step=1", f"histograms?{job}&tag=values", f"tensors?{job}&tag=weights&step=1&dims=[0,:]&detail=data", f"landscape/intervals?{job}",
                 f"graphs/nodes?{job}&type=name_scope&mode=normal", f"graphs/nodes/names?{job}&search=Conv&offset=0&limit=9", f"graphs/single-node?{job}&name=x", "train-job-caches"]
    found += [f"v1/mindinsight/datavisual/{path}" for path in reference]
    found += [f"v1/mindinsight/{path}" for path in ("lineagemgr/lineages", "optimizer/targets/search", f"datasets/dataset_graph?{job}")]
    return ["/" + path for path in found]


class Generator:
    def __init__(self, seed, known, port):
        self.rng, self.known, self.hosts = random.Random(seed), known, [f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()]

    def target(self):
        return self.rng.choice(self.known).encode()

    def request(self, method=None, target=None, host=None, headers=(), body=b"", version=b"HTTP/1.1"):
        if method is None:
            method = self.rng.choice([b"GET", b"GET", b"GET", b"HEAD", b"POST", b"PUT"])
        lines = [method + b" " + (self.target() if target is None else target) + b" " + version, b"Host: " + (self.rng.choice(self.hosts) if host is None else host), *headers]
        if body and not any(line.startswith((b"Content-Length", b"Transfer")) for line in headers):
            lines.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def changed(self, text):
        """Bytes replaced, put in, left out, doubled, cut."""
        rng, text = self.rng, bytearray(text)
        for _ in range(rng.choice([1, 1, 2, 4, 12])):
            at, way = rng.randrange(len(text) + 1), rng.randrange(6)
            if way == 0 and at < len(text):
                text[at] = rng.randrange(256)
            elif way == 1:
                text[at:at] = rng.choice(ODD)
            elif way == 2:
                del text[at:at + rng.randrange(1, 20)]
            elif way == 3:
                text[at:at] = text[at:at + rng.randrange(1, 60)]
            elif way == 4 and rng.random() < 0.3:
                del text[at:]
            elif way == 5:
                text[at:at] = rng.randbytes(rng.randrange(1, 30))
        return bytes(text)

    def one(self):
        """(what is sent, the statuses that the first answer may have; None: any, or none)"""
        rng = self.rng
        way = rng.randrange(14)
        if way < 4:
            return self.changed(self.request(body=rng.choice(BODIES))), None
        if way == 4:
            return self.request(method=rng.choice(METHODS), version=rng.choice(VERSIONS)), None
        if way in (5, 6):
            return self.request(headers=rng.sample(HEADERS, rng.randrange(1, 4)), body=rng.choice(BODIES)), None
        if way == 7:
            return self.request(method=b"GET", host=rng.choice(FOREIGN)), {403}
        if way == 8:
            method = rng.choice([b"PUT", b"POST"])
            return self.request(method=method, headers=[b"Content-Type: application/json", b"Origin: http://" + rng.choice(FOREIGN)], body=b"{}"), {403}
        if way == 9:
            return self.request(method=b"GET", target=rng.choice(OUTSIDE).encode()), {400, 404}
        if way == 10:  # parameters of all kinds
            target = self.target() + b"&" + b"&".join(rng.choice([b"points", b"from", b"dims", b"step", b"limit", b"offset", b"open", b"x"]) + b"=" + rng.choice(ODD).replace(b" ", b"+") for _ in range(rng.choice([1, 3, 900])))
            return self.request(target=target), None
        if way == 11:  # the whole address, an asterisk, no host, several hosts
            target = rng.choice([b"http://" + rng.choice(FOREIGN) + self.target(), b"*", b"", b"a:b", b"//" + rng.choice(FOREIGN) + b"/"])
            host = rng.choice([None, b"", b"127.0.0.1\r\nHost: evil.example"])
            return self.request(target=target, host=host), None
        if way == 12:  # several in one
            return b"".join(self.changed(self.request()) if rng.random() < 0.2 else self.request(method=b"GET") for _ in range(rng.randrange(2, 9))), None
        return rng.randbytes(rng.choice([1, 20, 400, 20000])), None


class Server:
    def __init__(self, lunaria, folder):
        (folder / "serve.lua").write_text(PROGRAM)
        base = write_runs(folder)
        self.process = subprocess.Popen([lunaria, str(folder / "serve.lua"), str(base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), f"the server does not start: {self.url}"
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])
        self.memory = self.resident()

    def resident(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def is_fine(self):
        """Whether it lives, answers what makes sense, and has not grown."""
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}"
        with urllib.request.urlopen(self.url + "v1/lunaria/runs", timeout=PATIENCE) as answer:
            names = [run["name"] for run in json.load(answer)["runs"]]
        assert names == ["first"], names
        grown = self.resident() - self.memory
        assert grown < MOST_MEMORY, f"the server has grown by {grown:.0f} MB"
        return grown


def ask(port, text, hasty):
    """The answers; of a stream, its beginning. A hasty client goes away at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(text)
            if hasty:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return b""
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while b"text/event-stream" not in answer[:2000]:
                more = connection.recv(1 << 16)
                if not more:
                    break
                answer += more
            return answer
        except (ConnectionResetError, BrokenPipeError):
            return b""  # it refused to read on


class Client(threading.Thread):
    def __init__(self, server, seed, known, count):
        super().__init__()
        self.server, self.generator, self.count, self.problem = server, Generator(seed, known, server.port), count, None
        self.seen = {}

    def run(self):
        for i in range(self.count):
            text, allowed = self.generator.one()
            try:
                self.judge(ask(self.server.port, text, allowed is None and self.generator.rng.random() < 0.03), allowed)
            except (AssertionError, OSError) as error:
                self.problem = f"request {i}: {error}\nwas sent: {text[:600]}"
                return

    def judge(self, answer, allowed):
        assert SECRET not in answer, "a file outside of the folder was given"
        first = STATUS.match(answer)
        assert first or not answer, f"no HTTP: {answer[:200]}"
        status = int(first[1]) if first else None
        self.seen[status] = self.seen.get(status, 0) + 1
        for found in STATUS.finditer(answer):
            assert int(found[1]) in STATUSES, f"the answer is {answer[found.start():][:400]}"
        assert allowed is None or status in allowed, f"status {status} is none of {allowed}"


def main():
    lunaria, count, seed = Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as folder:
        server = Server(lunaria, Path(folder))
        try:
            known, begun, done, grown, seen = addresses(server.url), time.monotonic(), 0, 0, {}
            while done < count:
                part = min(20000, count - done)
                clients = [Client(server, seed + done + i, known, part // CLIENTS + (i < part % CLIENTS)) for i in range(CLIENTS)]
                for client in clients:
                    client.start()
                for client in clients:
                    client.join()
                    assert client.problem is None, f"seed {seed + done}: {client.problem}"
                    for status, times in client.seen.items():
                        seen[status] = seen.get(status, 0) + times
                done += part
                grown = server.is_fine()
            assert seen.get(200, 0) > count / 20 and seen.get(400, 0) > count / 20 and seen[403] > count / 20, seen
            print(f"{done} hostile requests, {time.monotonic() - begun:.1f} s, memory grown by {grown:.0f} MB; first answers: {dict(sorted(seen.items(), key=str))}")
        except BaseException:
            server.process.kill()
            raise
        finally:
            server.process.stdin.close()
            server.process.wait(PATIENCE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
