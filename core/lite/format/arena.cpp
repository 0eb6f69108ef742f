#include "core/lite/format/arena.h"

#include <algorithm>

namespace lunaria::lite {

std::vector<Lifetime> lifetimes_of(const Model& model) {
    std::vector<Lifetime> lives(model.values.size());
    auto use = [&](const View& view, uint32_t step) {
        if (view.value == kNone) return;
        Lifetime& life = lives[view.value];
        if (life.first == kNone) life.first = step;
        life.last = step;
    };
    for (uint32_t s = 0; s < model.steps.size(); ++s) {
        const Step& step = model.steps[s];
        for (const View& v : step.operands) use(v, s);
        for (const View& v : step.results) use(v, s);
    }
    return lives;
}

// In the order of their creation, each in the first gap between those that live.
Placement place_arena(const Model& model, std::span<const uint64_t> sizes, uint64_t align) {
    const std::vector<Lifetime> lives = lifetimes_of(model);
    std::vector<std::vector<uint32_t>> made(model.steps.size());
    for (uint32_t v = 0; v < model.values.size(); ++v)
        if (model.values[v].home == Value::Home::arena && lives[v].first != kNone) made[lives[v].first].push_back(v);
    struct Block {
        uint64_t offset, bytes;
        uint32_t last, value;
    };
    Placement placement;
    placement.offsets.assign(model.values.size(), 0);
    std::vector<Block> alive;  // by ascending offsets
    for (uint32_t s = 0; s < model.steps.size(); ++s) {
        std::erase_if(alive, [&](const Block& b) { return b.last < s; });
        for (const uint32_t v : made[s]) {
            const uint64_t bytes = (sizes[v] + align - 1) / align * align;
            const auto shared = std::ranges::find_if(alive, [&](const Block& b) {
                return b.value == model.values[v].shares && b.last == s && b.bytes == bytes;
            });
            if (shared != alive.end()) {
                *shared = {shared->offset, bytes, lives[v].last, v};
                placement.offsets[v] = shared->offset;
                continue;
            }
            uint64_t at = 0;
            auto next = alive.begin();
            for (; next != alive.end() && next->offset < at + bytes; ++next)
                at = std::max(at, next->offset + next->bytes);
            alive.insert(next, {at, bytes, lives[v].last, v});
            placement.offsets[v] = at;
            placement.bytes = std::max(placement.bytes, at + bytes);
        }
    }
    return placement;
}

}  // namespace lunaria::lite
