// Any bytes are a file of pieces or an Error; what could be read survives being written again.
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/parallel/shards.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    using namespace lunaria::parallel;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::unique_ptr<Shards> shards;
    try {
        shards = std::make_unique<Shards>(memory_source("fuzz", bytes));
    } catch (const Error&) {
        return 0;
    }
    std::vector<Piece> pieces;
    try {
        for (const auto& [name, tensor] : shards->tensors()) {
            const Region& place = tensor.parts[0].place;
            Piece piece{name,
                        shards->read(name, place, Shards::Check::sums),
                        tensor.shape,
                        {},
                        tensor.parts[0].replica,
                        tensor.mesh,
                        tensor.layout};
            for (const Interval& interval : place) piece.offsets.push_back(interval.begin);
            pieces.push_back(std::move(piece));
            shards->read(name, place, Shards::Check::nothing);
            if (!shards->missing(name).empty()) continue;
            shards->read(name);
        }
        shards->verify(0);
    } catch (const Error&) {
        return 0;
    }
    StringSink sink;
    try {
        write_pieces(sink, pieces, shards->files()[0].metadata);
    } catch (const Error&) {
        return 0;
    }
    const Shards again(memory_source("again", sink.text()));
    for (const Piece& piece : pieces) {
        if (piece.tensor.size() == 0) continue;
        const Region& place = again.at(piece.name).parts.at(0).place;
        const Tensor tensor = again.read(piece.name, place, Shards::Check::sums);
        if (again.at(piece.name).shape != piece.whole || tensor.dtype() != piece.tensor.dtype() ||
            std::memcmp(tensor.raw(), piece.tensor.raw(), tensor.nbytes()) != 0)
            std::abort();
    }
    return 0;
}
