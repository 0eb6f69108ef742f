"""A proxy between the clients and the server of a federated job that does to their messages what networks do: it loses, repeats, delays,
alters and cuts them, sends old ones again, passes them on slowly, and resets or half closes their connections. It knows HTTP/1.1 with
Content-Length, one request per connection."""
import socket
import struct
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


def send_slowly(connection, message, seconds=0.5, pieces=20):
    size = len(message) // pieces + 1
    for begin in range(0, len(message), size):
        connection.sendall(message[begin:begin + size])
        time.sleep(seconds / pieces)


def reset(connection):
    """The other side is told that there is no such connection (RST), whatever is still on its way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half(message):
    return message[:len(message) // 2]


class Proxy:
    """Passes messages on to `port`. faults: a list of [endpoint, fault, times, first]; an endpoint "*" is every one. The fault happens to
    so many requests of the endpoint, from the one with this number on (1, unless it is given); each request takes the first fault that is
    for it and is not used up."""

    # By what happens, to a request or to its reply.
    KINDS = {"lost": ["lose_request", "lose_reply"], "duplicated": ["repeat"], "late": ["delay_request", "delay_reply"],
             "replayed": ["replay"], "altered": ["alter_request", "alter_reply"], "cut": ["cut_request", "cut_reply"],
             "slow": ["slow_request", "slow_reply"], "reset": ["reset_request", "reset_reply"],
             "half-closed": ["half_close_request", "half_close_reply"]}
    FAULTS = [fault for kind in KINDS.values() for fault in kind]

    def __init__(self, port, faults=(), delay=1.0):
        self.target, self.faults, self.delay = port, [list(fault) for fault in faults], delay
        self.seen, self.done, self.old = {}, [], {}
        self.began = None  # when the first fault happened, by time.time()
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
            self.seen[endpoint] = seen = self.seen.get(endpoint, 0) + 1
            for fault in self.faults:
                first = fault[3] if len(fault) > 3 else 1
                if fault[0] in (endpoint, "*") and fault[2] > 0 and seen >= first:
                    fault[2] -= 1
                    self.done.append((endpoint, fault[1]))
                    self.began = self.began or time.time()
                    return fault[1]
        return None

    def to_server(self):
        return socket.create_connection(("127.0.0.1", self.target), timeout=30)

    def forward(self, request, send=lambda server, request: server.sendall(request)):
        with self.to_server() as server:
            send(server, request)
            return read_message(server)

    def spoil_request(self, fault, connection, request):
        """Whether the fault leaves no reply."""
        if fault == "lose_request":
            return True
        if fault == "cut_request":
            with self.to_server() as server:
                server.sendall(half(request))
            return True
        if fault == "reset_request":
            server = self.to_server()
            server.sendall(half(request))
            reset(server)
            reset(connection)
            return True
        return False

    def reply_to(self, fault, request, old):
        """What the server says to the request, which may come otherwise than it was sent, or not alone."""
        if fault == "delay_request":
            time.sleep(self.delay)
        if fault == "repeat":
            self.forward(request)
        if fault == "replay":
            # Of all that this endpoint was sent, the first and the last before.
            for message in old[:1] + old[-1:]:
                self.forward(message)
        if fault == "slow_request":
            return self.forward(request, send_slowly)
        if fault == "half_close_request":
            # All was sent, and the sender says that there is no more, but listens.
            return self.forward(request, lambda server, whole: (server.sendall(whole), server.shutdown(socket.SHUT_WR)))
        return self.forward(altered(request) if fault == "alter_request" else request)

    def pass_back(self, fault, connection, reply):
        """Whether the connection goes on."""
        if fault == "lose_reply":
            return False
        if fault == "delay_reply":
            time.sleep(self.delay)
        if fault == "cut_reply":
            connection.sendall(half(reply))
            return False
        if fault == "reset_reply":
            connection.sendall(half(reply))
            reset(connection)
            return False
        if fault == "half_close_reply":
            # There is no more to come, but the connection stays.
            connection.sendall(half(reply))
            connection.shutdown(socket.SHUT_WR)
            return bool(connection.recv(1))
        if fault == "slow_reply":
            send_slowly(connection, reply)
        else:
            connection.sendall(altered(reply) if fault == "alter_reply" else reply)
        return True

    def answer(self, connection, request):
        """Whether the connection goes on."""
        endpoint = endpoint_of(request)
        if self.on_request:
            self.on_request(endpoint)
        fault = self.fault_of(endpoint)
        with self.lock:
            old = list(self.old.setdefault(endpoint, []))
            self.old[endpoint] = old[:1] + [request]
        if self.spoil_request(fault, connection, request):
            return False
        reply = self.reply_to(fault, request, old)
        return bool(reply) and self.pass_back(fault, connection, reply)
