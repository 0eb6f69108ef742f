#include "core/io/idx.h"

#include <array>

namespace lunaria {
namespace {

constexpr std::pair<uint8_t, DType> kIdxTypes[] = {{0x08, DType::u8},  {0x09, DType::i8},  {0x0b, DType::i16},
                                                   {0x0c, DType::i32}, {0x0d, DType::f32}, {0x0e, DType::f64}};

Tensor read_idx(Stream& stream) {
    if (stream.most() < 4) throw stream.error("is not an idx file: it is too short (truncated or empty)");
    std::array<uint8_t, 4> magic;
    stream.read(magic.data(), magic.size());
    const DType* dtype = nullptr;
    for (const auto& [code, type] : kIdxTypes)
        if (code == magic[2]) dtype = &type;
    if (magic[0] != 0 || magic[1] != 0 || !dtype)
        throw stream.error(
            "is not an idx file: it has another format (the first bytes are not 0, 0, a known type and a rank)");
    size_t rank = magic[3];
    if (rank == 0 || rank > kMaxRank)
        throw stream.error(str("corrupt: an idx file of ", rank, " axes; 1 to ", kMaxRank, " are possible"));
    std::array<int64_t, kMaxRank> dims{};
    for (size_t i = 0; i < rank; ++i) {
        std::array<uint8_t, 4> b;
        stream.read(b.data(), b.size());
        dims[i] = static_cast<int64_t>(b[0]) << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    Tensor tensor = read_elements(stream, *dtype, std::span(dims.data(), rank), true);
    stream.finish();
    return tensor;
}

}  // namespace

Tensor read_idx(const Source& source) {
    std::array<uint8_t, 2> start{};
    if (source.size() >= start.size()) source.read(0, start.data(), start.size());
    bool gzip = start[0] == 0x1f && start[1] == 0x8b;
    return read_idx(*(gzip ? gzip_stream(source) : plain_stream(source)));
}

Tensor read_idx(const std::string& path) { return read_idx(*open_source(path)); }

}  // namespace lunaria
