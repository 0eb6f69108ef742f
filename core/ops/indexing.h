// Indexing of tensors: x["1:3, ..., -1"] and x[{0, slice, mask, indices}]. An index is read once and then turned into
// calls of operators through a Builder, so that reading and writing differentiate like everything else.
//
// The rules are numpy's: integers remove their axis, slices keep it, "..." stands for the axes that no entry names,
// None adds one; index tensors are broadcast together and select element by element, and their axes come at the place
// of the first of them, or in front when other entries separate them; a mask of rank k selects along k axes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/operator/expr.h"

namespace lunaria {

struct IndexItem {
    enum class Kind : uint8_t { integer, slice, ellipsis, new_axis, tensor };
    Kind kind = Kind::integer;
    int64_t integer = 0;
    std::optional<int64_t> start, stop;
    int64_t step = 1;
    Value tensor;  // integers or bools; a tensor or a node

    static IndexItem at(int64_t i) {
        IndexItem item;
        item.integer = i;
        return item;
    }
    static IndexItem slice(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1) {
        IndexItem item;
        item.kind = Kind::slice;
        item.start = start;
        item.stop = stop;
        item.step = step;
        return item;
    }
    static IndexItem of(Kind kind) {
        IndexItem item;
        item.kind = kind;
        return item;
    }
    static IndexItem positions(Value tensor) {
        IndexItem item;
        item.kind = Kind::tensor;
        item.tensor = std::move(tensor);
        return item;
    }
};

struct Index {
    std::vector<IndexItem> items;
};

// Reads "1:3, ::2, ..., -1, None". Throws a syntax error that shows the text with a caret under the mistake.
Index parse_index(std::string_view where, std::string_view text);

// Whether the text can only be a slice, not the name of a field: it has a character that names do not have.
bool is_slice_text(std::string_view text);

// A name for errors of the operators that an index is made of, as after a composite operator: the tensor, which is what
// the user typed.
const Op& indexing();

// Throws an index error when a tensor of that shape has no axes.
void check_indexable(const Shape& shape);

// Throws an index error when a row or element i does not exist on an axis of that size.
void check_index(int64_t i, int axis, int64_t size);

// The selected elements: a view where the index holds no tensors.
Value index_get(Builder& builder, const Value& x, const Index& index);

// A copy of x in which the selected elements are `value`, broadcast and converted to x's dtype.
Value index_put(Builder& builder, const Value& x, const Index& index, const Value& value);

// Writes into x itself: all handles of its body see the change, other tensors do not.
void index_set(Tensor& x, const Index& index, const Value& value);

}  // namespace lunaria
