#include "core/loops/thread_loop.h"

#include <algorithm>
#include <numeric>

namespace lunaria::graph {

namespace {

constexpr int kFewestThreads = 64, kMostThreads = 1024;
constexpr int64_t kWarpRow = 256;    // a row of at most so many loads is the work of a warp
constexpr int64_t kManyRows = 1024;  // so many rows keep a processor busy with a warp each
constexpr int64_t kLoads = 4;        // loads of a row for each thread of a block
constexpr int64_t kFewestRows = 64;  // rows of a chunk
constexpr size_t kLoadBytes = 16;

// Sizes and strides by name.
struct Layout {
    std::vector<int64_t> outer;
    int64_t inner = 1;
    std::vector<std::vector<int64_t>> strides;  // of each operand along the outer axes
    std::vector<int64_t> wide;                  // and along the row, where the program asks for it
    std::vector<int64_t> depth;
    std::vector<std::vector<int64_t>> deep;  // of each operand along the axes of the depth

    Layout(const LoopProgram& program, std::span<const int64_t> sizes) {
        auto next = sizes.begin();
        const auto rank = static_cast<size_t>(program.outer_rank);
        for (size_t i = 0; i < rank; ++i) outer.push_back(*next++);
        inner = *next++;
        const auto depths = static_cast<std::ptrdiff_t>(program.depth.size());
        depth.assign(next, next + depths);
        next += depths;
        for (const LoopOperand& o : program.operands) {
            strides.emplace_back(next, next + program.outer_rank);
            next += program.outer_rank;
            wide.push_back(o.step == LoopOperand::Step::wide ? *next++ : 1);
            deep.emplace_back(next, next + depths);
            next += depths;
        }
    }

    std::vector<int64_t> words(const LoopProgram& program) const {
        std::vector<int64_t> list = outer;
        list.push_back(inner);
        list.insert(list.end(), depth.begin(), depth.end());
        for (size_t k = 0; k < strides.size(); ++k) {
            list.insert(list.end(), strides[k].begin(), strides[k].end());
            if (program.operands[k].step == LoopOperand::Step::wide) list.push_back(wide[k]);
            list.insert(list.end(), deep[k].begin(), deep[k].end());
        }
        return list;
    }

    // The order of the outer axes does not matter to a program: rows are numbered along them.
    void reorder(std::span<const size_t> order) {
        auto turn = [&](std::vector<int64_t>& list) {
            const std::vector<int64_t> old = list;
            for (size_t i = 0; i < order.size(); ++i) list[i] = old[order[i]];
        };
        turn(outer);
        for (auto& list : strides) turn(list);
    }
};

// The number of neighbouring elements that one load may take: all addresses that occur are multiples of it.
int lanes_of(const LoopProgram& program, const Layout& layout, std::span<const uintptr_t> addresses) {
    size_t widest = 1;
    for (const LoopOperand& o : program.operands) widest = std::max(widest, size_of(o.dtype));
    auto lanes = static_cast<int64_t>(kLoadBytes / std::max<size_t>(widest, 4));
    auto fits = [&](int64_t count) {
        if (layout.inner % count) return false;
        for (size_t k = 0; k < program.operands.size(); ++k) {
            if (program.operands[k].step != LoopOperand::Step::dense) continue;
            if (addresses[k] % (static_cast<size_t>(count) * size_of(program.operands[k].dtype))) return false;
            for (size_t i = 0; i < layout.outer.size(); ++i)
                if (layout.outer[i] > 1 && layout.strides[k][i] % count) return false;
            for (size_t i = 0; i < layout.depth.size(); ++i)
                if (layout.depth[i] > 1 && layout.deep[k][i] % count) return false;
        }
        return true;
    };
    while (lanes > 1 && !fits(lanes)) lanes /= 2;
    return static_cast<int>(lanes);
}

// Rows that add to the same place are the work of one thread (or group). Returns the number of axes, brought to the
// front, that tell places apart; -1 where operands disagree, so that all rows are one item.
int move_sums_apart(const LoopProgram& program, Layout& layout) {
    std::vector<bool> moves(layout.outer.size(), false);
    bool first = true;
    for (const LoopInstruction& i : program.code) {
        if (i.kind != LoopInstruction::Kind::add) continue;
        for (size_t axis = 0; axis < moves.size(); ++axis) {
            const bool here = layout.strides[i.index][axis] != 0 && layout.outer[axis] > 1;
            if (!first && moves[axis] != here) return -1;
            moves[axis] = here;
        }
        first = false;
    }
    std::vector<size_t> order(moves.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_partition(order, [&](size_t axis) { return moves[axis]; });
    layout.reorder(order);
    return static_cast<int>(std::ranges::count(moves, true));
}

// The number of threads that share a row of so many loads.
int threads_of_row(int64_t loads, int64_t rows) {
    if (loads <= kWarp || (loads <= kWarpRow && rows >= kManyRows)) return kWarp;
    const int64_t wanted = rows >= kManyRows ? loads / kLoads : loads;
    int threads = kFewestThreads;
    while (threads < wanted && threads < kMostThreads) threads *= 2;
    return threads;
}

bool fits_31_bits(const Layout& layout, int64_t rows) {
    constexpr int64_t kMost = (int64_t{1} << 31) - 1;
    return rows <= kMost / std::max<int64_t>(layout.inner, 1);
}

}  // namespace

std::string ThreadShape::text() const {
    return std::string("threads ") + "swb"[static_cast<size_t>(row)] + std::to_string(lanes) +
           (threads ? " of " + std::to_string(threads) : "") + (narrow ? " narrow" : "") +
           (single_row ? " single" : "") + (near_scratch ? " near" : "") + (in_chunks ? " chunks" : "");
}

ThreadLaunch plan_threads(const LoopProgram& program, std::span<const int64_t> sizes, int64_t rows,
                          std::span<const uintptr_t> addresses, const ThreadLimits& limits) {
    ThreadLaunch launch;
    ThreadShape& shape = launch.shape;
    Layout layout(program, sizes);
    int64_t places = rows, repeats = 1;
    int apart = -1;
    if (program.has_sums) {
        apart = move_sums_apart(program, layout);
        places = 1;
        for (int i = 0; i < apart; ++i) places *= layout.outer[static_cast<size_t>(i)];
        repeats = rows / std::max<int64_t>(places, 1);
    }
    shape.lanes = lanes_of(program, layout, addresses);
    shape.narrow = fits_31_bits(layout, rows);
    shape.single_row = program.outer_rank == 0;
    // The number of items side by side, and the threads of each.
    const int64_t columns = (layout.inner + shape.lanes - 1) / shape.lanes;
    const int64_t tiles = program.has_rows ? 1 : columns;
    if (program.has_rows) {
        const int threads = threads_of_row(columns, rows);
        shape.row = threads == kWarp ? ThreadShape::Row::warp : ThreadShape::Row::block;
        if (shape.row == ThreadShape::Row::block) shape.threads = threads;
    }
    int64_t group = 1;
    launch.threads = kRowThreads;
    if (shape.row == ThreadShape::Row::warp) group = kWarp;
    if (shape.row == ThreadShape::Row::block) group = launch.threads = shape.threads;
    const int64_t wanted = limits.most_blocks * launch.threads / group;
    // Only sums of a single place are cut into chunks: each copy of an operand is then complete.
    if (apart == 0)
        launch.chunks =
            std::clamp<int64_t>(wanted / std::max<int64_t>(tiles, 1), 1, std::max<int64_t>(1, repeats / kFewestRows));
    const int64_t chunk = (repeats + launch.chunks - 1) / launch.chunks;
    launch.chunks = chunk ? (repeats + chunk - 1) / chunk : 1;
    shape.in_chunks = launch.chunks > 1;
    const int64_t items = places * launch.chunks * tiles;
    const int64_t per_block = launch.threads / group;
    launch.blocks = std::clamp<int64_t>((items + per_block - 1) / per_block, 1, limits.most_blocks);

    const size_t kept = scratch_values(program).size() * static_cast<size_t>(layout.inner) * scratch_width(program);
    if (kept) {
        shape.near_scratch = kept * static_cast<size_t>(per_block) <= limits.most_near_bytes;
        (shape.near_scratch ? launch.near_bytes : launch.scratch_bytes) =
            kept * static_cast<size_t>(per_block) * static_cast<size_t>(shape.near_scratch ? 1 : launch.blocks);
    }
    launch.words = layout.words(program);
    for (int64_t count : {places, repeats, launch.chunks, chunk, tiles}) launch.words.push_back(count);
    return launch;
}

LoopProgram sum_of_chunks(DType dtype) {
    LoopProgram program;
    program.outer_rank = 1;
    program.has_sums = true;
    program.operands = {{dtype, LoopOperand::Step::dense, false}, {dtype, LoopOperand::Step::dense, true}};
    LoopInstruction load{.kind = LoopInstruction::Kind::load, .dtype = dtype, .operand = dtype};
    LoopInstruction add{.kind = LoopInstruction::Kind::add, .dtype = dtype, .operand = dtype, .index = 1, .args = {0}};
    program.code = {load, add};
    return program;
}

}  // namespace lunaria::graph
