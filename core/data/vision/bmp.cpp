// BMP: headers of OS/2 and of all versions of Windows, 1 to 32 bits for each pixel, plain, run-length encoded or with
// masks of the program that wrote the file.
#include <bit>
#include <cstring>

#include "core/data/vision/decode.h"

namespace lunaria::vision {

namespace {

enum Compression : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksWithAlpha = 6 };

// The bits of a pixel that hold one colour.
struct Mask {
    uint32_t bits = 0;
    int shift = 0;
    uint64_t most = 0;

    Mask() = default;
    explicit Mask(uint32_t mask) : bits(mask) {
        if (bits == 0) return;
        shift = std::countr_zero(bits);
        most = bits >> shift;
    }
    bool is_one_piece() const { return (most & (most + 1)) == 0; }
    uint8_t of(uint32_t pixel) const {
        return most == 0 ? 0 : static_cast<uint8_t>(uint64_t{(pixel & bits) >> shift} * 255 / most);
    }
};

struct Bitmap {
    int64_t height = 0, width = 0, bits = 0, first = 0, stride = 0;
    uint32_t compression = kPlain;
    bool from_top = false;
    std::string_view palette;
    size_t entry = 4;  // bytes of a colour in the palette
    Mask red, green, blue;

    bool is_encoded() const { return compression == kRuns8 || compression == kRuns4; }
};

template <class T>
T little(std::string_view bytes, size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

Error damaged(std::string_view where, std::string_view what) { return file_error(where, str("the BMP ", what)); }

bool is_known(const Bitmap& b) {
    switch (b.compression) {
        case kPlain:
            return b.bits == 1 || b.bits == 4 || b.bits == 8 || b.bits == 16 || b.bits == 24 || b.bits == 32;
        case kRuns8:
            return b.bits == 8;
        case kRuns4:
            return b.bits == 4;
        case kMasks:
        case kMasksWithAlpha:
            return b.bits == 16 || b.bits == 32;
        default:
            return false;
    }
}

void read_masks(std::string_view where, std::string_view bytes, Bitmap& b) {
    // The masks of pixels of two and four bytes whose file states none.
    const bool two = b.bits == 16;
    uint32_t red = two ? 0x7c00 : 0xff0000, green = two ? 0x03e0 : 0xff00, blue = two ? 0x001f : 0xff;
    if (b.compression == kMasks || b.compression == kMasksWithAlpha) {
        if (bytes.size() < 66) throw damaged(where, "is damaged: it ends in its masks");
        const auto r = little<uint32_t>(bytes, 54), g = little<uint32_t>(bytes, 58), m = little<uint32_t>(bytes, 62);
        if (r | g | m) red = r, green = g, blue = m;
    }
    b.red = Mask(red), b.green = Mask(green), b.blue = Mask(blue);
    const bool apart = !(red & green) && !(red & blue) && !(green & blue);
    const bool fit = !two || ((red | green | blue) >> 16) == 0;
    if (!apart || !fit || !b.red.is_one_piece() || !b.green.is_one_piece() || !b.blue.is_one_piece())
        throw damaged(where, "is damaged: its masks are no three colours");
}

void read_palette(std::string_view where, std::string_view bytes, size_t header, Bitmap& b) {
    const uint64_t most = uint64_t{1} << b.bits;
    uint64_t colours = header >= 40 ? little<uint32_t>(bytes, 46) : 0;
    if (colours == 0 || colours > most) colours = most;
    b.entry = header == 12 ? 3 : 4;
    const uint64_t at = 14 + uint64_t{header};
    // The oldest files state no number of colours: they have as many as there is room for.
    if (header == 12 && b.first > static_cast<int64_t>(at))
        colours = std::min(colours, (static_cast<uint64_t>(b.first) - at) / b.entry);
    if (at + b.entry * colours > bytes.size()) throw damaged(where, "is damaged: it ends in its colours");
    b.palette = bytes.substr(at, b.entry * colours);
}

Bitmap read_header(std::string_view where, std::string_view bytes) {
    if (bytes.size() < 26) throw damaged(where, "is damaged: it ends in its header");
    const auto header = little<uint32_t>(bytes, 14);
    if (header != 12 && (header < 40 || header > 124)) throw damaged(where, "has a header that is not known");
    if (bytes.size() < 14 + size_t{header}) throw damaged(where, "is damaged: it ends in its header");
    Bitmap b;
    b.first = little<uint32_t>(bytes, 10);
    if (header == 12) {
        b.width = little<uint16_t>(bytes, 18);
        b.height = little<uint16_t>(bytes, 20);
        b.bits = little<uint16_t>(bytes, 24);
    } else {
        b.width = little<int32_t>(bytes, 18);
        b.height = little<int32_t>(bytes, 22);
        b.bits = little<uint16_t>(bytes, 28);
        b.compression = little<uint32_t>(bytes, 30);
    }
    b.from_top = b.height < 0;
    b.height = std::abs(b.height);
    check_size(where, b.height, b.width);
    if (!is_known(b))
        throw damaged(where, str("has ", b.bits, " bits for each pixel and compression ", b.compression,
                                 ", which cannot be read"));
    b.stride = (b.width * b.bits + 31) / 32 * 4;
    const auto size = static_cast<int64_t>(bytes.size());
    if (b.first > size || (!b.is_encoded() && b.stride * b.height > size - b.first))
        throw damaged(where, "is damaged: it ends in its pixels");
    // Pixels that the runs skip take no bytes; a picture that is hardly anything else is an attack.
    if (b.is_encoded() && b.height * b.width > (int64_t{1} << 24) + 1024 * size)
        throw damaged(where, str("claims ", b.height, " x ", b.width, " pixels, more than its ", size,
                                 " bytes can hold: too large"));
    if (b.bits <= 8)
        read_palette(where, bytes, header, b);
    else if (b.bits != 24)
        read_masks(where, bytes, b);
    return b;
}

// The palette indices of a run-length encoded picture, one byte each. Skipped pixels have the first colour.
class Runs {
  public:
    Runs(std::string_view where, std::string_view bytes, const Bitmap& b)
        : where_(where),
          bytes_(bytes.substr(static_cast<size_t>(b.first))),
          b_(b),
          out_(static_cast<size_t>(b.height * b.width)) {}

    std::vector<uint8_t> read() {
        // The mark at the end of the picture may be missing after the last row.
        while (y_ < b_.height && !(at_ == bytes_.size() && y_ == b_.height - 1 && x_ >= b_.width)) {
            const int count = next(), value = next();
            if (count > 0)
                run(count, value);
            else if (value == 0)
                x_ = 0, ++y_;
            else if (value == 1)
                break;
            else if (value == 2)
                x_ += next(), y_ += next();
            else
                literal(value);
        }
        return std::move(out_);
    }

  private:
    int next() {
        if (at_ >= bytes_.size()) throw damaged(where_, "is damaged: it ends in its pixels");
        return static_cast<uint8_t>(bytes_[at_++]);
    }
    // Programs that write pixels in pairs go one past the end of a row.
    void put(int colour) {
        if (x_ < b_.width) out_[static_cast<size_t>(y_ * b_.width + x_)] = static_cast<uint8_t>(colour);
        ++x_;
    }
    void run(int count, int value) {
        for (int i = 0; i < count; ++i) put(b_.compression == kRuns8 ? value : i % 2 ? value & 15 : value >> 4);
    }
    void literal(int count) {
        const size_t begin = at_;
        for (int i = 0, pair = 0; i < count; ++i) {
            if (b_.compression == kRuns8) {
                put(next());
                continue;
            }
            if (i % 2 == 0) pair = next();
            put(i % 2 ? pair & 15 : pair >> 4);
        }
        if ((at_ - begin) % 2) next();
    }

    std::string_view where_, bytes_;
    const Bitmap& b_;
    std::vector<uint8_t> out_;
    size_t at_ = 0;
    int64_t x_ = 0, y_ = 0;
};

void put_colour(std::string_view where, const Bitmap& b, size_t number, uint8_t* to) {
    if (b.entry * (number + 1) > b.palette.size()) throw damaged(where, "is damaged: there is no such colour");
    const auto* colour = reinterpret_cast<const uint8_t*>(b.palette.data()) + b.entry * number;
    to[0] = colour[2], to[1] = colour[1], to[2] = colour[0];
}

void put_row(std::string_view where, const Bitmap& b, const uint8_t* row, uint8_t* to) {
    for (int64_t x = 0; x < b.width; ++x, to += 3) {
        if (b.bits <= 8) {
            const auto shift = static_cast<int>(8 - b.bits - x * b.bits % 8);
            put_colour(where, b, (row[x * b.bits / 8] >> shift) & ((1 << b.bits) - 1), to);
        } else if (b.bits == 24) {
            to[0] = row[3 * x + 2], to[1] = row[3 * x + 1], to[2] = row[3 * x];
        } else {
            uint32_t value = 0;
            for (int64_t i = b.bits / 8; i-- > 0;) value = value << 8 | row[x * b.bits / 8 + i];
            to[0] = b.red.of(value), to[1] = b.green.of(value), to[2] = b.blue.of(value);
        }
    }
}

}  // namespace

Extent bmp_size(std::string_view where, std::string_view bytes) {
    const Bitmap b = read_header(where, bytes);
    return {b.height, b.width, 3, false};
}

Tensor decode_bmp(std::string_view where, std::string_view bytes) {
    const Bitmap b = read_header(where, bytes);
    std::vector<uint8_t> numbers;
    if (b.is_encoded()) numbers = Runs(where, bytes, b).read();
    const Tensor out = Tensor::empty(DType::u8, {b.height, b.width, 3});
    auto* to = out.data<uint8_t>();
    for (int64_t y = 0; y < b.height; ++y, to += 3 * b.width) {
        const int64_t row = b.from_top ? y : b.height - 1 - y;
        if (b.is_encoded())
            for (int64_t x = 0; x < b.width; ++x)
                put_colour(where, b, numbers[static_cast<size_t>(row * b.width + x)], to + 3 * x);
        else
            put_row(where, b, reinterpret_cast<const uint8_t*>(bytes.data()) + b.first + row * b.stride, to);
    }
    return out;
}

}  // namespace lunaria::vision
