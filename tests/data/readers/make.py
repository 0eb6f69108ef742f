"""Files of other programs for the readers' tests, and what Pillow, soundfile, NumPy and SciPy make of them (expected.npz).

usage: python3 tests/data/readers/make.py      needs numpy, scipy, pillow and soundfile"""
import struct
from pathlib import Path

import numpy
import scipy.sparse
import soundfile
from PIL import Image, ImageOps

HERE = Path(__file__).parent
random = numpy.random.RandomState(5)
expected = {}
WIDTH, HEIGHT = 13, 5


def bitmap(name, bits, compression, data, palette=b"", masks=b"", header=40, top=False):
    """A BMP file by hand: Pillow writes few kinds."""
    height = -HEIGHT if top else HEIGHT
    if header == 12:
        info = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, len(data), 2835, 2835, len(palette) // 4, 0)
        if header > 40:
            info += masks + bytes(header - 40 - len(masks))
            masks = b""
    first = 14 + len(info) + len(masks) + len(palette)
    file = b"BM" + struct.pack("<IHHI", first + len(data), 0, 0, first) + info + masks + palette + data
    (HERE / name).write_bytes(file)
    try:
        expected[name] = numpy.array(Image.open(HERE / name).convert("RGB"))
    except OSError:  # layouts of masks that Pillow does not know
        values = numpy.frombuffer(data, "<u4").reshape(HEIGHT, WIDTH)[::-1]
        shifts = [(mask & -mask).bit_length() - 1 for mask in struct.unpack("<3I", masks)]
        expected[name] = numpy.stack([values >> shift & 255 for shift in shifts], 2).astype(numpy.uint8)


def rows(pixels):
    """Rows from the lowest up, each filled to four bytes."""
    return b"".join(row + bytes(-len(row) % 4) for row in pixels)


def packed(numbers, bits):
    """Numbers of colours as rows of bytes."""
    lines = []
    for row in numbers[::-1]:
        digits = "".join(format(n, f"0{bits}b") for n in row)
        digits += "0" * (-len(digits) % 8)
        lines.append(int(digits, 2).to_bytes(len(digits) // 8, "big"))
    return rows(lines)


def runs(numbers, pairs):
    """Run-length encoding with runs, literals, a jump and the marks."""
    out = b""
    for y, row in enumerate(numbers[::-1]):
        row = [int(n) for n in row]
        x = 0
        if y == 1:
            out += bytes([0, 2, 2, 0])
            numbers[::-1][y][:2] = 0
            x = 2
        while x < len(row):
            same = 1
            while x + same < len(row) and row[x + same] == row[x]:
                same += 1
            if same > 1 or len(row) - x < 4:
                out += bytes([same, row[x] << 4 | row[x] if pairs else row[x]])
                x += same
            else:
                count = 5 if len(row) - x >= 5 else 4
                part = row[x:x + count]
                if pairs:
                    padded = part + [0] * (len(part) % 2)
                    data = bytes(padded[i] << 4 | padded[i + 1] for i in range(0, len(padded), 2))
                else:
                    data = bytes(part)
                out += bytes([0, count]) + data + bytes(len(data) % 2)
                x += count
        out += bytes([0, 0])
    return out + bytes([0, 1])


def images():
    colours = random.randint(0, 256, (256, 4)).astype(numpy.uint8)
    colours[:, 3] = 0
    for bits in (1, 4, 8):
        numbers = random.randint(0, 1 << bits, (HEIGHT, WIDTH))
        bitmap(f"plain{bits}.bmp", bits, 0, packed(numbers, bits), colours[:1 << bits].tobytes())
    numbers = random.randint(0, 2, (HEIGHT, WIDTH))
    bitmap("old1.bmp", 1, 0, packed(numbers, 1), colours[:2, :3].tobytes(), header=12)
    wide = random.randint(0, 256, (HEIGHT, WIDTH, 3)).astype(numpy.uint8)
    bitmap("old24.bmp", 24, 0, rows(row.tobytes() for row in wide), header=12)
    bitmap("top24.bmp", 24, 0, rows(row.tobytes() for row in wide), top=True)
    for pairs, name in ((False, "runs8.bmp"), (True, "runs4.bmp")):
        numbers = numpy.repeat(random.randint(0, 16, (HEIGHT, 7)), 2, 1)[:, :WIDTH]
        numbers[:, 6:11] = random.randint(0, 16, (HEIGHT, 5))
        encoded = runs(numbers, pairs)
        bitmap(name, 4 if pairs else 8, 2 if pairs else 1, encoded, colours[:16].tobytes())
    short = random.randint(0, 1 << 16, (HEIGHT, WIDTH)).astype("<u2")
    bitmap("plain16.bmp", 16, 0, rows(row.tobytes() for row in short & 0x7FFF))
    bitmap("masks565.bmp", 16, 3, rows(row.tobytes() for row in short), masks=struct.pack("<3I", 0xF800, 0x7E0, 0x1F))
    full = random.randint(0, 1 << 32, (HEIGHT, WIDTH), dtype=numpy.int64).astype("<u4")
    for name, masks in (("masks_bgr.bmp", (0xFF0000, 0xFF00, 0xFF)), ("masks_rgb.bmp", (0xFF, 0xFF00, 0xFF0000)),
                        ("masks_high.bmp", (0xFF000000, 0xFF0000, 0xFF00))):
        bitmap(name, 32, 3, rows(row.tobytes() for row in full), masks=struct.pack("<3I", *masks))
    bitmap("masks_v4.bmp", 32, 3, rows(row.tobytes() for row in full), masks=struct.pack("<4I", 0xFF, 0xFF00, 0xFF0000, 0xFF000000), header=108)
    picture = Image.fromarray(random.randint(0, 256, (2, 3, 3)).astype(numpy.uint8))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        name = f"turned{orientation}.png"
        picture.save(HERE / name, exif=exif)
        expected[name] = numpy.array(ImageOps.exif_transpose(Image.open(HERE / name)))
    smooth = Image.fromarray(numpy.arange(8 * 16 * 3).reshape(8, 16, 3).astype(numpy.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    smooth.save(HERE / "turned6.jpg", exif=exif, quality=95)
    expected["turned6.jpg"] = numpy.array(ImageOps.exif_transpose(Image.open(HERE / "turned6.jpg")))


def wave(name, form, bits, block, data, channels=2, size=None, extra=b""):
    body = struct.pack("<HHIIHH", form, channels, 8000, 8000 * block, block, bits) + extra
    size = len(data) if size is None else size
    chunks = b"WAVE" + b"fmt " + struct.pack("<I", len(body)) + body + b"data" + struct.pack("<I", size) + data
    (HERE / name).write_bytes(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)


def sounds():
    sound = (0.6 * numpy.sin(numpy.arange(600).reshape(300, 2) / 7)).astype(numpy.float32)
    for name, kind in (("alaw.wav", "ALAW"), ("mulaw.wav", "ULAW"), ("ima.wav", "IMA_ADPCM"), ("ms.wav", "MS_ADPCM")):
        soundfile.write(HERE / name, sound, 8000, subtype=kind)
    twenty = (random.randint(-1 << 19, 1 << 19, 60) << 4).astype("<i4")
    wave("bits20.wav", 1, 20, 6, b"".join(n.tobytes()[:3] for n in twenty))
    wide = random.randint(-1 << 31, 1 << 31, 60).astype("<i4") & ~0xFF
    guid = struct.pack("<H", 1) + bytes.fromhex("000000001000800000aa00389b71")
    wave("extensible.wav", 0xFFFE, 32, 8, wide.astype("<i4").tobytes(), extra=struct.pack("<HHI", 22, 24, 3) + guid)
    short = random.randint(-1 << 15, 1 << 15, 60).astype("<i2")
    wave("piped.wav", 1, 16, 4, short.tobytes(), size=0xFFFFFFFF)
    wave("cut.wav", 1, 16, 4, short.tobytes(), size=1000)
    for name in ("alaw.wav", "mulaw.wav", "ima.wav", "ms.wav", "bits20.wav", "extensible.wav", "piped.wav", "cut.wav"):
        samples, _ = soundfile.read(HERE / name, dtype="float32")
        expected[name] = samples.T


def arrays():
    matrix = scipy.sparse.random(6, 5, 0.4, "csr", numpy.float32, random_state=random)
    scipy.sparse.save_npz(HERE / "csr.npz", matrix)
    expected["csr.npz"] = matrix.toarray()
    numpy.savez(HERE / "texts.npz", names=numpy.array([["ab", "c\u00e4\u4e2d"], ["", "\U0001F600x"], ["e", "f"]]), bytes=numpy.array([b"xyz", b""]),
                one=numpy.array("word"), big=numpy.array(["be", "d"], ">U2"), turned=numpy.asfortranarray([["a", "b", "c"], ["d", "e", "f"]]),
                numbers=numpy.arange(3))


if __name__ == "__main__":
    images()
    sounds()
    arrays()
    numpy.savez_compressed(HERE / "expected.npz", **expected)
