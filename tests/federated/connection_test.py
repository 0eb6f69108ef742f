"""Connections of federated clients: certificates that are wrong in every way have errors that say how; servers that answer nothing,
too much, too slowly or something else end in errors, too, and limits of bandwidth hold.

usage: connection_test.py LUNARIA"""
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from certificates import DAY, Authority
from proxy import read_message

HERE = Path(__file__).resolve().parent
LUNARIA = sys.argv[1]
passed = 0


class Server:
    """Answers every request by what `answer(request)` gives: the bytes that it sends."""

    def __init__(self, answer=lambda request: b"", certificate=None, authority=None):
        self.answer, self.requests = answer, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
            if authority:
                self.context.verify_mode = ssl.CERT_REQUIRED
                self.context.load_verify_locations(authority)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            while request := read_message(connection):
                self.requests += 1
                answer = self.answer(request)
                if not answer:
                    break
                connection.sendall(answer)
        except OSError:
            pass
        finally:
            connection.close()

    def close(self):
        self.listening.close()


def reply(body, status="200 OK", head=""):
    return f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def client(url, *words, patience="0.3"):
    started = time.time()
    done = subprocess.run([LUNARIA, "federated", "client", str(HERE / "party.lua"), "--url", url, "--fl-name", "job", "--client-id", "a",
                           "--patience", patience, *map(str, words), "--", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, env={**os.environ, "LUNARIA_NUM_THREADS": "1"})
    return done.returncode, done.stdout, time.time() - started


def check(name, got, *wanted, secret=None):
    global passed
    code, text, _ = got
    if code == 0 or any(w not in text for w in wanted) or (secret and secret in text):
        sys.exit(f"{name}: expected {wanted}, got {code}: {text}")
    passed += 1


def certificates(folder):
    ours, other = Authority(folder, "ours"), Authority(folder, "other")
    good = ours.issue("good")
    cases = [
        ("expired", ours.issue("expired", begins=-2 * DAY, ends=-DAY), "the server's certificate has expired"),
        ("early", ours.issue("early", begins=DAY, ends=2 * DAY), "is not valid yet, or the clock here is slow"),
        ("another host", ours.issue("another", host="DNS:example.org"), "the server's certificate is for another host"),
        ("another authority", other.issue("foreign"), "is of no authority that is believed here"),
    ]
    for name, certificate, wanted in cases:
        server = Server(certificate=certificate)
        check(name, client(f"https://127.0.0.1:{server.port}", "--ca-cert", ours.certificate), wanted)
        server.close()
    server = Server(lambda request: reply(b"x"), certificate=good)
    url = f"https://127.0.0.1:{server.port}"
    check("a good one", client(url, "--ca-cert", ours.certificate), "the reply is no message of the job")
    if server.requests == 0:
        sys.exit("a good certificate was not believed")
    check("no authority", client(url), "is of no authority that is believed here")
    crl = ours.revoke(good[0])
    check("revoked", client(url, "--ca-cert", ours.certificate, "--crl", crl), "the server's certificate was revoked")
    check("http to a server of https", client(f"http://127.0.0.1:{server.port}"), "ended before the reply was complete")
    server.close()
    plain = Server()
    plain.serve = lambda connection: (connection.recv(1000), connection.sendall(reply(b"", "400 Bad Request")), connection.close())
    check("https to a server of http", client(f"https://127.0.0.1:{plain.port}", "--ca-cert", ours.certificate), "TLS cannot be set up")
    plain.close()
    # Servers that ask for the client's.
    server = Server(lambda request: reply(b"x"), certificate=good, authority=ours.certificate)
    url = f"https://127.0.0.1:{server.port}"
    wanted = "the client's certificate"  # cannot be read, or the server refuses it, or may refuse it
    check("none of its own", client(url, "--ca-cert", ours.certificate), wanted)
    foreign = other.issue("client")
    check("a foreign one", client(url, "--ca-cert", ours.certificate, "--client-cert", foreign[0], "--client-key", foreign[1]), wanted)
    wanted = "the client's certificate cannot be read, or the server refuses it"
    own = ours.issue("client")
    check("its own", client(url, "--ca-cert", ours.certificate, "--client-cert", own[0], "--client-key", own[1]), "is no message of the job")
    check("a key that does not fit", client(url, "--ca-cert", ours.certificate, "--client-cert", own[0], "--client-key", foreign[1],
                                            "--client-password", "geheim"), wanted, secret="geheim")
    check("no such file", client(url, "--ca-cert", folder / "none.pem"), "there is no file")
    server.close()


def misbehaviour():
    cases = [
        ("silence", lambda request: b"", "the connection ended before the reply was complete"),
        ("garbage", lambda request: b"hello\r\n\r\n", "ended before the reply was complete"),
        ("an error", lambda request: reply(b"", "503 Busy"), "the HTTP status 503"),
        ("another page", lambda request: reply(b"<html>", "404 Not Found"), "the HTTP status 404"),
        ("a redirection", lambda request: reply(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "the HTTP status 302"),
        ("a cut reply", lambda request: reply(b"x" * 100)[:-50], "ended before the reply was complete"),
        ("too large", lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n", "larger than the client takes"),
    ]
    for name, answer, wanted in cases:
        server = Server(answer)
        if name == "a cut reply":
            server.serve = lambda connection, cut=answer: (read_message(connection), connection.sendall(cut(b"")), connection.close())
        check(name, client(f"http://127.0.0.1:{server.port}"), wanted)
        server.close()
    check("no server", client("http://127.0.0.1:1"), "there is no connection to the server", "was tried", "patience")
    check("no host", client("http://host.invalid:80"), "there is no connection to the server")
    check("no address", client("ftp://127.0.0.1"), "url must be http://host:port or https://host:port")


def bandwidth():
    server = Server(lambda request: reply(b"x" * 300_000))
    got = client(f"http://127.0.0.1:{server.port}", "--download-limit", "200000")
    check("slow", got, "no message of the job")
    if not 1.2 <= got[2] <= 20:
        sys.exit(f"300,000 bytes at 200,000 a second took {got[2]:.2f} s")
    server.close()


with tempfile.TemporaryDirectory() as temporary:
    if not shutil.which("openssl"):
        sys.exit(77)
    certificates(Path(temporary))
misbehaviour()
bandwidth()
print(f"{passed} passed, 0 failed")
