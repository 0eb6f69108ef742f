"""An event file as TensorBoard writes it, with one curve of precision and recall: what Lunaria reads and does not write."""
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(n):
    parts = []
    while n > 127:
        parts.append(n & 127 | 128)
        n >>= 7
    return bytes(parts + [n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    value = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def pr_curve(path, tag, rows):
    """rows: true and false positives, true and false negatives, precision, recall, each for every threshold."""
    numbers = [float(v) for row in rows for v in row]
    shape = b"".join(field(2, field(1, size)) for size in (6, len(rows[0])))
    tensor = field(1, 1) + field(2, shape) + field(4, struct.pack(f"<{len(numbers)}f", *numbers))
    value = field(1, tag) + field(9, field(1, field(1, "pr_curves") + field(2, b""))) + field(8, tensor)
    with open(path, "wb") as file:
        file.write(record(field(1, 1e9) + field(3, "brain.Event:2")))
        file.write(record(field(1, 1e9) + field(2, 7) + field(5, field(1, value))))
