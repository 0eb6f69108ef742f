// Weights in blocks: rows of numbers in the forms of GGUF files, 32 or 256 numbers with their scales in a block. A
// tensor of such rows is one of bytes whose last axis is the bytes of a row; the form stands beside it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lunaria {

struct BlockForm {
    std::string_view name;  // as "q8_0"
    int64_t elements;       // numbers in a block
    int64_t bytes;          // bytes of a block
    // Whole blocks to numbers and back. `encode` is null where nothing is written in this form.
    void (*decode)(const uint8_t* blocks, int64_t count, float* to);
    void (*encode)(const float* from, int64_t count, uint8_t* blocks);

    // Of a row of `count` numbers, which must be a multiple of `elements`.
    int64_t row_bytes(int64_t count) const { return count / elements * bytes; }
    int64_t row_elements(int64_t byte_count) const { return byte_count / bytes * elements; }
};

// q8_0, q4_0, q4_k and q6_k.
std::span<const BlockForm> block_forms();
// Null for an unknown name.
const BlockForm* find_block_form(std::string_view name);

}  // namespace lunaria
