"""A proxy between the clients and the server of a federated job that does to their messages what networks do: it loses, repeats, delays,
alters and cuts them, and sends old ones again. It knows HTTP/1.1 with Content-Length, one request per connection."""
import socket
import threading
import time


def read_message(connection):
    """The bytes of a request or reply: its head and its body; empty where the other side has nothing to say."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return b""
        data += part
    head, body = data.split(b"\r\n\r\n", 1)
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body


def endpoint_of(request):
    return request.split(b" ", 2)[1].rsplit(b"/", 1)[-1].decode()


def altered(message):
    """One bit in the middle of the body is another one."""
    head, body = message.split(b"\r\n\r\n", 1)
    if not body:
        return message
    body = bytearray(body)
    body[len(body) // 2] ^= 0x10
    return head + b"\r\n\r\n" + bytes(body)


class Proxy:
    """Passes messages on to `port`. faults: a list of [endpoint, fault, times]; an endpoint "*" is every one. Each request takes the
    first fault that is for it and is not used up."""

    FAULTS = ["lose_request", "lose_reply", "repeat", "delay", "alter_request", "alter_reply", "cut_request", "cut_reply", "replay"]

    def __init__(self, port, faults=(), delay=1.0):
        self.target, self.faults, self.delay = port, [list(fault) for fault in faults], delay
        self.seen, self.done, self.old = {}, [], {}
        self.lock = threading.Lock()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.is_open = True
        self.on_request = None
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.is_open = False
        self.listening.close()

    def accept(self):
        while self.is_open:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while request := read_message(connection):
                    if not self.answer(connection, request):
                        return
            except OSError:
                return

    def fault_of(self, endpoint):
        with self.lock:
            self.seen[endpoint] = self.seen.get(endpoint, 0) + 1
            for fault in self.faults:
                if fault[0] in (endpoint, "*") and fault[2] > 0:
                    fault[2] -= 1
                    self.done.append((endpoint, fault[1]))
                    return fault[1]
        return None

    def forward(self, request):
        with socket.create_connection(("127.0.0.1", self.target), timeout=30) as server:
            server.sendall(request)
            return read_message(server)

    def answer(self, connection, request):
        """Whether the connection goes on."""
        endpoint = endpoint_of(request)
        if self.on_request:
            self.on_request(endpoint)
        fault = self.fault_of(endpoint)
        old = self.old.get(endpoint)
        self.old[endpoint] = request
        if fault == "lose_request":
            return False
        if fault == "delay":
            time.sleep(self.delay)
        if fault == "cut_request":
            with socket.create_connection(("127.0.0.1", self.target), timeout=30) as server:
                server.sendall(request[:len(request) // 2])
            return False
        if fault == "repeat":
            self.forward(request)
        if fault == "replay" and old:
            self.forward(old)
        reply = self.forward(altered(request) if fault == "alter_request" else request)
        if not reply or fault == "lose_reply":
            return False
        if fault == "alter_reply":
            reply = altered(reply)
        if fault == "cut_reply":
            connection.sendall(reply[:len(reply) // 2])
            return False
        connection.sendall(reply)
        return True
