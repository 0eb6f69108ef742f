#include "jit/graph/arena.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <vector>

namespace lunaria::graph {

namespace {

// Bounds the excess, so that a small program does not keep the memory of a much larger one alive.
constexpr size_t kMostSlack = 4, kSmall = 1 << 20;
// Sizes up to this one are rounded up to the classes of core/memory/memory.cpp, which costs nothing, so that programs
// of growing sizes find existing memory.
constexpr size_t kRounded = 64 << 20;

size_t rounded(size_t bytes) {
    if (bytes > kRounded) return bytes;
    const size_t step = std::max<size_t>(std::bit_floor(bytes) / 16, 4096);
    return (bytes + step - 1) / step * step;
}

struct Arenas {
    std::mutex mutex;
    std::vector<std::weak_ptr<Arena>> all;
};
Arenas& arenas() {
    static Arenas known;
    return known;
}

}  // namespace

Arena::Arena(size_t bytes, Device* place)
    : place_(place), bytes_(bytes), memory_(Tensor::empty(DType::u8, {static_cast<int64_t>(bytes)}, place)) {}

ArenaShare::ArenaShare(size_t bytes, Device* place) {
    Arenas& known = arenas();
    const size_t most = std::max(kMostSlack * bytes, kSmall);
    std::lock_guard lock(known.mutex);
    std::erase_if(known.all, [](const std::weak_ptr<Arena>& one) { return one.expired(); });
    for (const std::weak_ptr<Arena>& one : known.all) {
        std::shared_ptr<Arena> arena = one.lock();
        if (!arena || arena->place_ != place || arena->bytes_ < bytes || arena->bytes_ > most) continue;
        if ((arena_ && arena_->bytes_ <= arena->bytes_) || !arena->reserve()) continue;
        if (arena_) arena_->give_back();
        arena_ = std::move(arena);
    }
    if (arena_) return;
    arena_ = std::make_shared<Arena>(rounded(bytes), place);
    arena_->reserve();
    known.all.push_back(arena_);
}

}  // namespace lunaria::graph
