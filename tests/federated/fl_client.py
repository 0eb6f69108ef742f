"""A client of federated servers in another language than ours: the messages of core/federated/messages.proto by hand, over http.client.
For tests that want wrong messages as easily as right ones."""
import http.client
import ssl
import struct
import time


def _crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_CRC = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def integer(field, value):
    return varint(field << 3) + varint(value)


def blob(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def fields(data):
    """{field: [values]} of a message."""
    found, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            value = number()
        elif kind == 2:
            size = number()
            value = data[at:at + size]
            at += size
        else:
            size = 8 if kind == 1 else 4
            value = struct.unpack("<d" if kind == 1 else "<f", data[at:at + size])[0]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def feature(name, values, shape=None):
    """A tensor of float32."""
    text = blob(1, name)
    for size in shape or [len(values)]:
        text += integer(2, size)
    return text + integer(3, 0) + blob(4, struct.pack(f"<{len(values)}f", *values)) + integer(7, 1)


def update(features, samples=1, metrics=(), encoding=0):
    text = integer(1, samples) + integer(2, encoding)
    for one in features:
        text += blob(3, one)
    for name, value in metrics:
        text += blob(6, blob(1, name) + double(2, value))
    return text


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


class Reply:
    def __init__(self, body):
        found = fields(body)
        self.code = found.get(1, [200])[0]
        self.reason = found.get(2, [b""])[0].decode()
        self.iteration = found.get(3, [0])[0]
        self.next_request_time = found.get(4, [0])[0]
        self.timestamp = found.get(5, [0])[0]
        self.content = found.get(6, [b""])[0]

    def model(self, field=None):
        """{name: numbers} of a content that is a feature map, or has one in a field."""
        content = fields(self.content)[field][0] if field else self.content
        return {fields(one)[1][0].decode(): floats(fields(one)[4][0]) for one in fields(content).get(1, [])}


class Client:
    def __init__(self, name, port, job="job", host="127.0.0.1", context=None, prefix=""):
        self.name, self.job, self.prefix = name, job, prefix
        if context:
            self.connection = http.client.HTTPSConnection(host, port, context=context, timeout=60)
        else:
            self.connection = http.client.HTTPConnection(host, port, timeout=60)

    def envelope(self, content=b"", iteration=0, timestamp=None, sign=None, certificate=b""):
        """sign: a function from the bytes that are signed, without their first lines, to a signature."""
        timestamp = int(time.time() * 1000) if timestamp is None else timestamp
        head = f"{self.job}\n{self.name}\n{iteration}\n{timestamp}\n".encode()
        signature = sign(head + content) if sign else b""
        return (blob(1, self.job) + blob(2, self.name) + integer(3, iteration) + integer(4, timestamp) + blob(5, content)
                + (blob(6, signature) + blob(7, certificate) if sign else b"") + integer(8, crc32c(head + content + signature + certificate)))

    def post(self, endpoint, body, kind="application/x-protobuf"):
        """The status and the body of the answer."""
        self.connection.request("POST", f"{self.prefix}/{endpoint}", body, {"Content-Type": kind})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def ask(self, endpoint, content=b"", iteration=0):
        status, body = self.post(endpoint, self.envelope(content, iteration))
        if status != 200:
            raise AssertionError(f"{endpoint}: status {status}: {body[:200]}")
        return Reply(body)

    def until(self, endpoint, content=b"", iteration=0, seconds=30):
        """Asks again while the answer is that it is too early."""
        end = time.monotonic() + seconds
        while True:
            reply = self.ask(endpoint, content, iteration)
            if reply.code not in (201,) or time.monotonic() > end:
                return reply
            time.sleep(0.02)

    def start(self, samples=1, seconds=30):
        return self.until("startFLJob", integer(1, samples), seconds=seconds)

    def close(self):
        self.connection.close()


def tls(authority=None, certificate=None, key=None):
    context = ssl.create_default_context(cafile=authority) if authority else ssl._create_unverified_context()
    context.check_hostname = False
    if certificate:
        context.load_cert_chain(certificate, key)
    return context
