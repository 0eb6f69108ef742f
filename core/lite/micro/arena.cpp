#include "core/lite/micro/arena.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/lite/format/arena.h"
#include "core/lite/format/sizes.h"

namespace lunaria::lite::micro {

namespace {

// Temporaries that follow one another in the same place.
struct Block {
    uint64_t bytes = 0, align = 4;
    uint32_t first = 0, last = 0;
    uint64_t offset = 0;
};

// Whether all stores of a loop are in its last pass, so that no later pass reads what they have overwritten.
bool stores_last(const graph::LoopProgram& program) {
    const std::vector<int> passes = graph::passes_of(program);
    const int last = passes.empty() ? 0 : *std::ranges::max_element(passes);
    for (size_t i = 0; i < passes.size(); ++i) {
        const auto kind = program.code[i].kind;
        if (kind == graph::LoopInstruction::Kind::add ||
            (kind == graph::LoopInstruction::Kind::store && passes[i] != last))
            return false;
    }
    return true;
}

bool may_share(const Model& model, const Step& step, uint32_t other) {
    if (step.kind == "loop") return stores_last(model.loops[step.loop].program);
    // The residual of a product is read where the result is written.
    for (size_t i = 0; i < step.operands.size(); ++i)
        if (step.operands[i].value == other && i != 4) return false;
    return step.kind == "product" || step.kind == "convolution" || step.kind == "integer_product" ||
           step.kind == "integer_convolution" || step.kind == "integer_sum";
}

// By the lowest place that is free for as long as the block lives, in the order of `order`.
uint64_t place(std::vector<Block>& blocks, const std::vector<size_t>& order) {
    std::vector<const Block*> placed;  // by ascending offsets
    uint64_t bytes = 0;
    for (const size_t b : order) {
        Block& block = blocks[b];
        uint64_t at = 0;
        for (const Block* other : placed) {
            if (other->last < block.first || other->first > block.last) continue;
            if (at + block.bytes <= other->offset) break;
            at = std::max(at, (other->offset + other->bytes + block.align - 1) / block.align * block.align);
        }
        block.offset = at;
        placed.insert(std::ranges::upper_bound(placed, at, {}, &Block::offset), &block);
        bytes = std::max(bytes, at + block.bytes);
    }
    return bytes;
}

uint64_t largest_live_set(const std::vector<Block>& blocks) {
    uint64_t most = 0;
    for (const Block& at : blocks) {
        uint64_t live = 0;
        for (const Block& b : blocks)
            if (b.first <= at.first && at.first <= b.last) live += b.bytes;
        most = std::max(most, live);
    }
    return most;
}

}  // namespace

Arena plan_arena(const Model& model) {
    const std::vector<Lifetime> lives = lifetimes_of(model);
    Arena arena;
    arena.offsets.assign(model.values.size(), 0);
    std::vector<Block> blocks;
    std::vector<size_t> block_of(model.values.size(), SIZE_MAX);
    // In the order of steps: the value whose place is shared comes before.
    std::vector<uint32_t> values;
    for (uint32_t v = 0; v < model.values.size(); ++v)
        if (model.values[v].home == Value::Home::arena && lives[v].first != kNone) values.push_back(v);
    std::ranges::stable_sort(values, {}, [&](uint32_t v) { return lives[v].first; });
    for (const uint32_t v : values) {
        const Value& value = model.values[v];
        std::vector<int64_t> shape;
        for (const Number& n : value.shape) shape.push_back(n.value);
        const uint64_t bytes = lite::bytes_of(value.dtype, value.form, shape).value_or(0),
                       align = std::max<uint64_t>(4, size_of(value.dtype));
        const uint32_t other = value.shares;
        if (other != kNone && block_of[other] != SIZE_MAX && lives[other].last == lives[v].first &&
            blocks[block_of[other]].last == lives[v].first && blocks[block_of[other]].bytes == bytes &&
            may_share(model, model.steps[lives[v].first], other)) {
            Block& block = blocks[block_of[v] = block_of[other]];
            block.last = lives[v].last;
            block.align = std::max(block.align, align);
            continue;
        }
        block_of[v] = blocks.size();
        blocks.push_back({bytes, align, lives[v].first, lives[v].last, 0});
    }
    arena.live = largest_live_set(blocks);
    // Large ones first is mostly best; where it leaves gaps, other orders are tried, the same ones each time.
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t b) { return blocks[b].bytes; });
    std::vector<Block> best = blocks;
    arena.bytes = place(best, order);
    std::mt19937 random(1);
    for (int trial = 0; trial < 300 && arena.bytes > arena.live && blocks.size() < 2000; ++trial) {
        if (trial == 0)
            std::iota(order.begin(), order.end(), size_t{0});
        else
            std::swap(order[random() % order.size()], order[random() % order.size()]);
        const uint64_t bytes = place(blocks, order);
        if (bytes >= arena.bytes) continue;
        arena.bytes = bytes;
        best = blocks;
    }
    for (const uint32_t v : values) arena.offsets[v] = best[block_of[v]].offset;
    for (const Block& b : best) arena.align = std::max(arena.align, b.align);
    return arena;
}

}  // namespace lunaria::lite::micro
