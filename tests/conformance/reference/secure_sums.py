"""Secure sums computed anew, for tests/data/conformance/secure-vectors.json: the group ristretto255 in whole numbers of Python (RFC 9496), the
ciphers of the package cryptography, nothing of Lunaria.

usage: secure_sums.py FILE            writes the cases
       secure_sums.py --check FILE    says whether they are what the file has; leaves with 77 where cryptography is not installed"""
import hashlib
import json
import struct
import sys

try:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError:
    print("skipped: the package cryptography is not installed")
    sys.exit(77)

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1


def square_root_ratio(u, v):
    """Whether u / v is a square, and its root or that of ROOT times it, which is not negative."""
    r = u * v**3 * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    correct, flipped, flipped_i = check == u % P, check == -u % P, check == -u * ROOT % P
    if flipped or flipped_i:
        r = r * ROOT % P
    return correct or flipped, P - r if r & 1 else r


INVERSE_ROOT_A_D = square_root_ratio(1, -1 - D)[1]
BASE_Y = 4 * pow(5, -1, P) % P


def base_point():
    ratio = (BASE_Y * BASE_Y - 1) * pow(D * BASE_Y * BASE_Y + 1, -1, P) % P
    x = pow(ratio, (P + 3) // 8, P)
    if x * x % P != ratio:
        x = x * ROOT % P
    x = P - x if x & 1 else x
    return x, BASE_Y, 1, x * BASE_Y % P


def add(a, b):
    (x1, y1, z1, t1), (x2, y2, z2, t2) = a, b
    p, q, r, s = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2), 2 * t1 * t2 * D, 2 * z1 * z2
    e, f, g, h = q - p, s - r, s + r, q + p
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar, point):
    result = (0, 1, 1, 0)
    for bit in bin(scalar)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def encoded(point):
    x0, y0, z0, t0 = point
    u1, u2 = (z0 + y0) * (z0 - y0) % P, x0 * y0 % P
    _, invsqrt = square_root_ratio(1, u1 * u2 * u2 % P)
    den1, den2 = invsqrt * u1 % P, invsqrt * u2 % P
    z_inverse = den1 * den2 * t0 % P
    x, y, den = x0, y0, den2
    if t0 * z_inverse % P & 1:
        x, y, den = y0 * ROOT % P, x0 * ROOT % P, den1 * INVERSE_ROOT_A_D % P
    if x * z_inverse % P & 1:
        y = P - y
    s = den * (z0 - y) % P
    return (P - s if s & 1 else s).to_bytes(32, "little")


def framed(*parts):
    parts = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def derived(secret, info):
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(secret)


def key_stream(key, count):
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))


def mask(seed, row):
    each = row["bits"] // 8
    stream = key_stream(seed, each * len(next(iter(row["clients"].values()))["vector"]))
    return [int.from_bytes(stream[i:i + each], "little") for i in range(0, len(stream), each)]


def neighbours(row, context, joined):
    if row["neighbours"] == 0 or row["neighbours"] + 1 >= len(joined):
        return {a: [b for b in joined if b != a] for a in joined}
    circle = sorted(joined, key=lambda a: hashlib.sha256(framed(context, "graph", a)).digest())
    half, near = row["neighbours"] // 2, {}
    for i, a in enumerate(circle):
        near[a] = sorted({circle[(i + step) % len(circle)] for step in range(-half, half + 1)} - {a})
    return near


PHASES = ["keys", "shares", "update", "list", "reveal"]


def computed(row):
    """The masked updates and the sum of survivors, of which the masks are never looked at."""
    modulus, clients = 2 ** row["bits"], row["clients"]
    size = len(next(iter(clients.values()))["vector"])
    context = framed("lunaria secure sum 1", row["job"], str(row["iteration"]), str(row["bits"]), str(size), str(row["threshold"]),
                     str(row["neighbours"]), "unsigned")
    secrets = {}
    for name, client in clients.items():
        drawn = key_stream(hashlib.sha256(client["secret"].encode()).digest(), 160)
        secrets[name] = [int.from_bytes(drawn[at:at + 64], "little") % ORDER for at in (32, 96)]  # after the cipher's key
    takes_part = {name: PHASES.index(row["dropouts"].get(name, "reveal")) if name in row["dropouts"] else 5 for name in clients}
    joined = sorted(name for name in clients if takes_part[name] > 0)
    shared = [name for name in joined if takes_part[name] > 1]
    near = neighbours(row, context, joined)
    updates, total = {}, [0] * size
    for name in shared:
        if takes_part[name] <= 2:
            continue
        key, seed = secrets[name]
        vector = [int(text, 16) for text in clients[name]["vector"]]
        total = [(a + b) % modulus for a, b in zip(total, vector)]
        vector = [(a + b) % modulus for a, b in zip(vector, mask(derived(seed.to_bytes(32, "little"), framed(context, "own")), row))]
        for other in near[name]:
            if other in shared:
                agreed = encoded(times(key * secrets[other][0] % ORDER, base_point()))
                sign = 1 if name < other else -1
                vector = [(a + sign * b) % modulus for a, b in zip(vector, mask(derived(agreed, framed(context, "pair")), row))]
        updates[name] = b"".join(value.to_bytes(row["bits"] // 8, "little") for value in vector).hex()
    return {"updates": updates, "sum": [f"{value:016x}" for value in total], "survivors": sorted(updates)}


def cases():
    rows = [("all stay", 3, 2, 0, 64, {}),
            ("one before each phase", 6, 3, 0, 64, {"client-1": "keys", "client-2": "shares", "client-3": "update"}),
            ("late ones", 5, 3, 0, 32, {"client-0": "list", "client-4": "reveal"}),
            ("neighbours", 9, 3, 4, 40, {"client-5": "update", "client-7": "shares"}),
            ("bytes", 4, 3, 0, 8, {"client-3": "update"})]
    for description, count, threshold, degree, bits, dropouts in rows:
        clients = {}
        for i in range(count):
            stream = key_stream(hashlib.sha256(f"{description} {i}".encode()).digest(), 8 * 5)
            vector = [int.from_bytes(stream[at:at + 8], "little") % 2**bits for at in range(0, 40, 8)]
            clients[f"client-{i}"] = {"secret": f"{description}, secret of {i}", "vector": [f"{value:016x}" for value in vector]}
        row = {"description": description, "job": "vectors", "iteration": count, "threshold": threshold, "neighbours": degree, "bits": bits,
               "clients": clients, "dropouts": dropouts}
        yield row | computed(row)


def main():
    assert encoded(base_point()).hex() == "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"  # RFC 9496, A.1
    content = {"about": "made by tests/conformance/reference/secure_sums.py", "secure_sums": {"cases": list(cases())}}
    if sys.argv[1] != "--check":
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        same = json.load(file) == content
    print(f"{int(same)} passed, {int(not same)} failed")
    sys.exit(not same)


main()
