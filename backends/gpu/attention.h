// Common parts of the attention kernels: the geometry of a call, and the place of a block of threads in it.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/gpu/launcher.h"
#include "core/tensor/device.h"

namespace lunaria::gpu {

struct AttentionGeometry {
    int64_t heads = 1, queries = 0, keys = 0;  // heads: of all samples
    int size = 0, value_size = 0;
    DType dtype = DType::f32, sum = DType::f32;
    bool causal = false;
};

// A tensor of (batch, heads, length, size), restricted to one head of one sample.
struct HeadMatrix {
    Elements elements;
    Number start, row, column, length;
};

// The arguments of every kernel after its tensors, and the place of its block.
struct AttentionPlace {
    Number queries, keys, heads_of_sample, shift, factor;
    Number head, tile;

    AttentionPlace(Writer& w, const AttentionGeometry& g, bool rows_are_keys, int tile_rows)
        : queries(w.size()), keys(w.size()), heads_of_sample(w.size()), shift(w.size()), factor(w.real(g.sum)) {
        const Number tiles = quotient((rows_are_keys ? keys : queries) + (tile_rows - 1), int64_t{tile_rows});
        head = quotient(w.block(), tiles);
        tile = remainder(w.block(), tiles) * tile_rows;
    }
    HeadMatrix matrix(Writer& w, const Elements& elements, Number length) const {
        const Number sample_step = w.size(), head_step = w.size(), row = w.size(), column = w.size();
        const Number start =
            quotient(head, heads_of_sample) * sample_step + remainder(head, heads_of_sample) * head_step;
        return {elements, start, row, column, length};
    }
    // Whether the query sees the key; both may be past the end.
    Number sees(const AttentionGeometry& g, Number query, Number key) const {
        const Number inside = (key < keys) & (query < queries);
        return g.causal ? inside & (key <= query + shift) : inside;
    }
    // The end of the keys that a query sees.
    Number end_of_keys(const AttentionGeometry& g, Number query) const {
        if (!g.causal) return keys;
        const Number end = query + shift + 1;
        return select(end < keys, end, keys);
    }
};

// Less than any score, but finite, so that differences of scores are finite.
inline constexpr double kLowestScore = -3.0e38;

// For a call whose query is argument `first`.
std::optional<AttentionGeometry> attention_geometry(const KernelCall& c, size_t first);
void add_attention_place(Words& words, const KernelCall& c, const AttentionGeometry& g, size_t first);

// The same by the units that multiply blocks of 16-bit matrices; false where they do not support the call.
bool attention_by_units(Launcher& launcher, const KernelCall& c, const AttentionGeometry& g);
bool attention_grad_by_units(Launcher& launcher, const KernelCall& c, const AttentionGeometry& g);

}  // namespace lunaria::gpu
