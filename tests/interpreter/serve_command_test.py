"""The server as a process: lunaria insight start, list, stop, parse; live points; Ctrl-C; a port that is taken; bad connections.

usage: serve_command_test.py LUNARIA"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

LUNARIA = sys.argv.pop(1) if len(sys.argv) > 1 else "build/lunaria"
SAMPLES = "tests/data/samples"


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(step, value):
    content = b"\x0a\x04loss\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(content)]) + content
    event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", crc(length)) + event + struct.pack("<I", crc(event))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.port = free_port()
        self.process = None

    def start(self, *options, base=SAMPLES):
        self.process = subprocess.Popen([LUNARIA, "insight", "start", "--summary-base-dir", base, "--port", str(self.port), *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        return self.process.stdout.readline()

    def end(self):
        self.process.kill()
        self.process.communicate()

    def command(self, *words):
        return subprocess.run([LUNARIA, "insight", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def get(self, path, headers=None, method="GET", body=None):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                return s.recv(200)
            except OSError:  # the server has closed the connection
                return b""

    def test_pages_answers_and_refusals(self):
        self.assertIn(f"http://127.0.0.1:{self.port}/ shows", self.start())
        self.assertEqual(self.get("/")[0], 200)
        runs = json.loads(self.get("/v1/lunaria/runs")[1])["runs"]
        self.assertIn("events", [run["name"] for run in runs])
        self.assertEqual(self.get("/", {"Host": "evil.example"})[0], 403)
        self.assertEqual(self.get("/", {"Origin": "http://evil.example"})[0], 403)
        for path in ("/../../etc/passwd", "/%2e%2e/x", "/%00", "/v1/lunaria/runs/..%2f..", "/index.html%00.js"):
            self.assertEqual(self.get(path)[0], 404, path)
        self.assertEqual(self.get("/v1/mindinsight/lineagemgr/lineages", {"Content-Type": "application/json"}, "POST", "{}")[0], 200)
        # A head of more than 8 KB and a body of more than 1 MB are not read.
        self.assertNotIn(b" 200 ", self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 20000 + b"\r\n\r\n"))
        self.assertNotIn(b" 200 ", self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: a\r\n" * 3000 + b"\r\n"))
        self.assertNotIn(b" 200 ", self.raw(b"POST /v1/mindinsight/lineagemgr/lineages HTTP/1.1\r\nHost: localhost\r\n"
                                            b"Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n" + b" " * 3000000))
        for data in (b"", b"\r\n", b"GET\r\n\r\n", b"\x00" * 100, b"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + b"0-1," * 1500 + b"\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"):
            self.raw(data)
        self.assertEqual(self.get("/")[0], 200)

    def test_points_come_as_events_within_a_second(self):
        path = os.path.join(self.folder, "run", "events.out.tfevents.1.host")
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as file:
            file.write(record(1, 1.0))
        self.start(base=self.folder)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/lunaria/events")
        stream = connection.getresponse()
        self.assertTrue(stream.readline().startswith(b"data: "))
        stream.readline()
        begun = time.monotonic()
        with open(path, "ab") as file:
            file.write(record(2, 0.5))
        line = stream.readline()
        self.assertLess(time.monotonic() - begun, 15)  # 0.5 s where the machine is not busy
        [run] = json.loads(line[6:])["runs"]
        [tag] = json.loads(self.get(f"/v1/lunaria/runs/{run}/tags")[1])["scalars"]
        self.assertEqual(json.loads(self.get(f"/v1/lunaria/runs/{run}/scalars/{tag['id']}")[1])["value"], [1.0, 0.5])
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(20), 0)

    def test_list_stop_and_a_taken_port(self):
        self.start("--url-path-prefix", "/a/b")
        self.assertEqual(self.get("/")[0], 404)
        self.assertEqual(self.get("/a/b/")[0], 200)
        self.assertIn(f"127.0.0.1:{self.port}/a/b/ shows", self.command("list").stdout)
        again = self.command("start", "--port", str(self.port))
        self.assertEqual(again.returncode, 1)
        self.assertRegex(again.stdout, f"port {self.port} is taken by lunaria \\(process {self.process.pid}\\), which serves .*samples"
                                       "(.|\n)*hint: port \\d+ is free")
        self.assertEqual(self.command("stop", "--port", str(self.port)).returncode, 0)
        self.assertEqual(self.process.wait(20), 0)
        self.assertNotIn(str(self.port), self.command("list").stdout)
        self.assertEqual(self.command("stop", "--port", str(self.port)).returncode, 1)
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.port))
            other.listen()
            self.assertRegex(self.command("start", "--port", str(self.port)).stdout, f"port {self.port} is taken by python3? ")

    def test_a_token_elsewhere(self):
        line = self.start("--host", "0.0.0.0", "--allow-host", "me.example")
        self.assertEqual(self.get("/")[0], 401)
        self.assertEqual(self.get("/", {"Host": "me.example"})[0], 401)
        token = line.split("token=")[1].split()[0]
        self.assertEqual(self.get("/", {"Authorization": "Bearer " + token})[0], 200)

    def test_parse_writes_files(self):
        done = self.command("parse", "--summary-dir", SAMPLES + "/events", "--output", self.folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(self.folder + "/scalar.csv", encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], "tag,step,wall_time,value")
        self.assertEqual(len(lines), 6)
        self.assertTrue(all(name.endswith(".png") for name in os.listdir(self.folder + "/image")))


unittest.main(verbosity=2)
