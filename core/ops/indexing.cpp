#include "core/ops/indexing.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/operator/expansion.h"
#include "core/ops/layout.h"
#include "core/tensor/turned.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "tensor";

class SliceText {
  public:
    SliceText(std::string_view where, std::string_view text) : where_(where), text_(text) {}

    Index read() {
        Index index;
        spaces();
        if (at_end()) fail("an index is expected");
        while (!at_end()) {
            if (index.items.size() >= 32) fail("more than 32 entries");
            index.items.push_back(item());
            spaces();
            if (at_end()) break;
            if (!eat(',')) fail("',' or ':' is expected");
            spaces();
        }
        return index;
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        // Long texts are shown around the mistake only; control characters would break the line.
        size_t from = at_ > 60 ? at_ - 60 : 0;
        std::string shown(text_.substr(from, 100));
        for (char& c : shown)
            if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
        throw Error(ErrorKind::syntax, where_,
                    str("malformed index: ", what, "\n    ", shown, "\n    ", std::string(at_ - from, ' '), "^"));
    }
    bool at_end() const { return at_ >= text_.size(); }
    void spaces() {
        while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    }
    bool eat(char c) {
        spaces();
        if (at_end() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool eat_word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }
    std::optional<int64_t> number() {
        spaces();
        const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
        if (begin != end && *begin == '+') ++begin;
        int64_t value = 0;
        auto result = std::from_chars(begin, end, value);
        if (result.ec == std::errc::result_out_of_range) fail("the number is too large");
        if (result.ec != std::errc()) return std::nullopt;
        at_ = static_cast<size_t>(result.ptr - text_.data());
        return value;
    }
    IndexItem item() {
        if (eat_word("...")) return IndexItem::of(IndexItem::Kind::ellipsis);
        for (std::string_view word : {"None", "newaxis", "nil"})
            if (eat_word(word)) return IndexItem::of(IndexItem::Kind::new_axis);
        auto start = number();
        if (!eat(':')) {
            if (!start) fail("a number, a slice like 1:3, '...' or None is expected");
            return IndexItem::at(*start);
        }
        auto stop = number();
        int64_t step = 1;
        if (eat(':')) {
            size_t before = at_;
            step = number().value_or(1);
            if (step == 0) {
                at_ = before;
                fail("a slice step of 0 goes nowhere");
            }
        }
        return IndexItem::slice(start, stop, step);
    }

    std::string_view where_, text_;
    size_t at_ = 0;
};

bool is_mask(const IndexItem& item) {
    return item.kind == IndexItem::Kind::tensor && type_of(item.tensor).dtype == DType::boolean;
}

bool is_advanced(const Index& index) {
    return std::any_of(index.items.begin(), index.items.end(),
                       [](const IndexItem& item) { return item.kind == IndexItem::Kind::tensor; });
}

// The number of the tensor's axes that an entry covers.
int axes_of(const IndexItem& item) {
    switch (item.kind) {
        case IndexItem::Kind::ellipsis:
        case IndexItem::Kind::new_axis:
            return 0;
        case IndexItem::Kind::tensor:
            return is_mask(item) ? type_of(item.tensor).shape.rank() : 1;
        default:
            return 1;
    }
}

// Checks entries against the shape, adds an omitted ellipsis, and removes one that covers no axes beside entries for
// all of them: other systems' slices have at most as many entries as the tensor has axes.
Index completed(const Index& index, const Shape& shape) {
    int used = 0, ellipses = 0;
    for (const IndexItem& item : index.items) {
        if (item.kind == IndexItem::Kind::tensor) {
            DType dtype = type_of(item.tensor).dtype;
            if (!is_integer(dtype) && dtype != DType::boolean)
                throw dtype_error(kWhere, str("an index tensor must hold integers or bools, not ", name_of(dtype)));
            if (is_mask(item) && axes_of(item) == 0) throw index_error(kWhere, "a mask needs at least one axis");
        }
        used += axes_of(item);
        ellipses += item.kind == IndexItem::Kind::ellipsis;
    }
    if (ellipses > 1) throw index_error(kWhere, "an index holds at most one '...'");
    if (used > 0) check_indexable(shape);
    if (used > shape.rank())
        throw index_error(
            kWhere, str("too many indices: ", used, " for a tensor of rank ", shape.rank(), " (shape ", shape, ")"));
    Index whole = index;
    if (used > 0 && used == shape.rank())
        std::erase_if(whole.items, [](const IndexItem& item) { return item.kind == IndexItem::Kind::ellipsis; });
    else if (ellipses == 0)
        whole.items.push_back(IndexItem::of(IndexItem::Kind::ellipsis));
    int axis = 0;
    for (const IndexItem& item : whole.items) {
        if (item.kind == IndexItem::Kind::integer) check_index(item.integer, axis, shape[axis]);
        if (item.kind == IndexItem::Kind::slice && item.step == 0)
            throw value_error(kWhere, "a slice step of 0 goes nowhere");
        if (is_mask(item)) {
            Shape mask = type_of(item.tensor).shape;
            bool fits = true;
            for (int k = 0; k < mask.rank(); ++k)
                fits &= mask[k] == shape[axis + k] || mask[k] == kUnknownDim || shape[axis + k] == kUnknownDim;
            if (!fits)
                throw index_error(kWhere, str("a mask of shape ", mask, " does not fit axes ", axis, " .. ",
                                              axis + mask.rank() - 1, " of a tensor of shape ", shape));
        }
        axis += item.kind == IndexItem::Kind::ellipsis ? shape.rank() - used : axes_of(item);
    }
    return whole;
}

// The lists and masks of strided_slice and slice_assign.
struct SliceArgs {
    std::vector<IndexItem> items;
    std::vector<int64_t> begin, stop, strides;
    int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;

    void add(const IndexItem& item) {
        items.push_back(item);
        int64_t bit = int64_t{1} << begin.size();
        if (item.kind == IndexItem::Kind::ellipsis) ellipsis_mask |= bit;
        if (item.kind == IndexItem::Kind::new_axis) new_axis_mask |= bit;
        bool integer = item.kind == IndexItem::Kind::integer;
        if (integer) shrink_axis_mask |= bit;
        if (!integer && !item.start) begin_mask |= bit;
        if (!integer && !item.stop) end_mask |= bit;
        begin.push_back(integer ? item.integer : item.start.value_or(0));
        stop.push_back(item.stop.value_or(0));
        strides.push_back(item.step);
    }
    // Whether the slice changes nothing.
    bool trivial() const { return begin.size() == 1 && ellipsis_mask == 1; }
    std::vector<Value> values() const {
        return {Value::ints(begin), Value::ints(stop),    Value::ints(strides), Value(begin_mask),
                Value(end_mask),    Value(ellipsis_mask), Value(new_axis_mask), Value(shrink_axis_mask)};
    }
    Expr get(const Expr& x) const {
        if (trivial()) return x;
        if (new_axis_mask) return with_new_axes(x);
        auto v = values();
        return call("strided_slice", {x, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]});
    }
    // New axes come after the slice, which then has no more entries than the tensor has axes.
    Expr with_new_axes(const Expr& x) const {
        int used = 0, axis = 0;
        for (const IndexItem& item : items) used += axes_of(item);
        SliceArgs slice;
        std::vector<int> added;
        for (const IndexItem& item : items) {
            if (item.kind == IndexItem::Kind::new_axis) {
                added.push_back(axis++);
                continue;
            }
            slice.add(item);
            if (item.kind == IndexItem::Kind::ellipsis) axis += x.rank() - used;
            if (item.kind == IndexItem::Kind::slice) ++axis;
        }
        Expr y = slice.items.empty() ? x : slice.get(x);
        for (int at : added) y = call("expand_dims", {y, at});
        return y;
    }
    Expr put(const Expr& x, const Expr& value) const {
        auto v = values();
        return call("slice_assign", {x, value, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]});
    }
    Layout layout(const Tensor& t) const {
        Layout layout{t.shape(), t.strides()};
        std::vector<Value> args = values();
        slice_layout(Call(registry().get("strided_slice"), args, t.dtype()), 0, layout);
        return layout;
    }
};

SliceArgs basic(const Index& whole) {
    SliceArgs args;
    for (const IndexItem& item : whole.items) args.add(item);
    return args;
}

// An index with tensors, taken apart: a slice first, then positions along some axes of its result.
struct Advanced {
    SliceArgs slice;
    std::vector<Expr> positions;  // one for each axis, all of one shape
    Shape axes;                   // of the sliced tensor
    Shape joint;                  // shape of the positions
    int place = 0;                // the place of the positions' axes in the result

    Advanced(Builder& builder, const Index& whole, const Shape& shape) {
        bool together = true, before = false, done = false;
        int axis = 0, used = 0;  // of the sliced tensor
        for (const IndexItem& item : whole.items) used += axes_of(item);
        for (const IndexItem& item : whole.items) {
            // Beside tensors an integer is one more (constant) position.
            bool selects = item.kind == IndexItem::Kind::tensor || item.kind == IndexItem::Kind::integer;
            together &= !(selects && done);
            done |= before && !selects;
            before |= selects;
            if (!selects) {
                slice.add(item);
                axis += item.kind == IndexItem::Kind::ellipsis ? shape.rank() - used : 1;
                continue;
            }
            for (const Expr& e : selection(builder, item)) {
                positions.push_back(e);
                axes.push_back(axis++);
                slice.add(IndexItem::slice(std::nullopt, std::nullopt));
            }
        }
        for (const Expr& e : positions) joint = broadcast(kWhere, joint, e.shape());
        if (positions.size() > 1)
            for (Expr& e : positions) e = e.broadcast_to(joint);
        place = together ? static_cast<int>(axes[0]) : 0;
        // Slices of all axes, including those of the ellipsis, need no slice operator.
        bool whole_axes = true;
        for (const IndexItem& item : whole.items)
            whole_axes &= item.kind != IndexItem::Kind::new_axis &&
                          (item.kind != IndexItem::Kind::slice || (!item.start && !item.stop && item.step == 1));
        if (whole_axes) {
            slice = SliceArgs();
            slice.add(IndexItem::of(IndexItem::Kind::ellipsis));
        }
    }

    static std::vector<Expr> selection(Builder& builder, const IndexItem& item) {
        if (item.kind == IndexItem::Kind::integer) return {builder.constant(Tensor::scalar(item.integer))};
        if (!is_mask(item)) return {as_positions(builder.constant(item.tensor))};
        int rank = axes_of(item);
        Expr rows = builder.call("argwhere", {builder.constant(item.tensor)});
        if (rank == 1) return {rows.reshape({-1})};
        std::vector<Expr> columns;
        Expr parts = builder.call("unbind", {rows, 1});
        for (int i = 0; i < rank; ++i) columns.push_back(parts[static_cast<size_t>(i)]);
        return columns;
    }

    // The order of axes that brings the selected ones to the front.
    Shape front_order(int rank) const {
        Shape order = axes;
        for (int i = 0; i < rank; ++i)
            if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
        return order;
    }
    Expr points(Builder& builder) const {
        if (positions.size() == 1) return builder.call("expand_dims", {positions[0], -1});
        return builder.call("stack", {builder.list(positions), -1});
    }
    // Moves the axes of the positions between the front and their place.
    Expr placed(const Expr& front, bool back) const {
        if (place == 0 || joint.rank() == 0) return front;
        Shape here, there;
        for (int i = 0; i < joint.rank(); ++i) {
            here.push_back(i);
            there.push_back(place + i);
        }
        return call("movedim", {front, back ? there : here, back ? here : there});
    }
    Expr get(Builder& builder, const Expr& x) const {
        Expr y = slice.get(x);
        if (positions.size() == 1) return builder.call("gather", {y, positions[0], axes[0]});
        Expr front = builder.call("gather_nd", {y.transpose(front_order(y.rank())), points(builder)});
        return placed(front, false);
    }
    Expr put(Builder& builder, const Expr& x, const Expr& value) const {
        Expr y = slice.get(x);
        Shape order = front_order(y.rank()), back = order;
        for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
        bool moves = !(order == all_axes(order.rank()));
        Expr front = moves ? y.transpose(order) : y;
        // The shape of get()'s result.
        Shape rest, picked = joint;
        for (int i = axes.rank(); i < order.rank(); ++i) rest.push_back(front.shape()[i]);
        for (int64_t size : rest) picked.push_back(size);
        Shape result;
        for (int i = 0; i < place; ++i) result.push_back(rest[i]);
        for (int64_t size : joint) result.push_back(size);
        for (int i = place; i < rest.rank(); ++i) result.push_back(rest[i]);
        if (!(broadcast(kWhere, result, value.shape()) == result))
            throw shape_error(kWhere, str("a value of shape ", value.shape(), " does not fit the ", result,
                                          " elements that the index picks"));
        Expr updates = placed(value.broadcast_to(result), true);
        front = builder.call("tensor_scatter_nd", {front, points(builder), updates, "none"});
        y = moves ? front.transpose(back) : front;
        return slice.trivial() ? y : slice.put(x, y);
    }
};

// A value to be written, as an expression of x's dtype.
Expr converted(Builder& builder, const Value& value, DType dtype) {
    if (value.is_tensor() || value.is_node()) return builder.constant(value).cast(dtype);
    if (value.is_number() || value.kind() == Value::Kind::boolean) return builder.call("full", {Shape{}, value, dtype});
    throw argument_error(kWhere, str("a tensor or a number can be written into a tensor, not ", to_string(value)));
}

void check_fits(const Shape& region, const Shape& value) {
    if (!region.known() || !value.known()) return;
    if (!(broadcast(kWhere, region, value) == region))
        throw shape_error(kWhere, str("a value of shape ", value, " does not fit a part of shape ", region));
}

// Renames errors of the operators that an index is made of: they speak of the tensor, which is what the user typed.
template <class F>
auto renamed(F f) {
    try {
        return f();
    } catch (const Error& e) {
        if (e.kind() != ErrorKind::index || e.where() == kWhere) throw;
        throw Error(e.kind(), kWhere, e.message());
    }
}

// x[mask] = number: no positions are needed.
bool is_plain_mask(const Index& index) { return index.items.size() == 1 && is_mask(index.items[0]); }

Expr put_under_mask(Builder& builder, const Expr& x, const Value& mask, const Expr& value) {
    Shape shape = type_of(mask).shape;
    while (shape.rank() < x.rank()) shape.push_back(1);
    return builder.call("where", {builder.constant(mask).reshape(shape), value, x});
}

}  // namespace

const Op& indexing() {
    static Registry own;
    static const Op& op = own.add("tensor(x: tensor)");
    return op;
}

void check_indexable(const Shape& shape) {
    if (shape.rank() == 0) throw index_error(kWhere, "a tensor of rank 0 cannot be indexed").hint("use x:item()");
}

void check_index(int64_t i, int axis, int64_t size) {
    if (size == kUnknownDim || (i >= -size && i < size)) return;
    if (size == 0) throw index_error(kWhere, str("index ", i, " is out of range: axis ", axis, " is empty"));
    if (axis == 0)
        throw index_error(kWhere,
                          str("index ", i, " is out of range for axis 0 with ", size, size == 1 ? " row" : " rows",
                              ": tensor indices start at 0, the last row is x[", size - 1, "] or x[-1]"));
    throw index_error(kWhere, str("index ", i, " is out of range for axis ", axis, " of size ", size,
                                  ": tensor indices start at 0, the last one is ", size - 1, " or -1"));
}

Index parse_index(std::string_view where, std::string_view text) { return SliceText(where, text).read(); }

bool is_slice_text(std::string_view text) {
    return std::ranges::any_of(text, [](char c) { return c == ':' || c == ',' || c == '.' || c == '-' || c == ' '; }) ||
           text == "None" || (!text.empty() && text[0] >= '0' && text[0] <= '9');
}

Value index_get(Builder& builder, const Value& x, const Index& index) {
    Index whole = completed(index, type_of(x).shape);
    if (is_advanced(whole))
        return renamed([&] {
            Expr e = builder.constant(x);
            return Advanced(builder, whole, e.shape()).get(builder, e).value();
        });
    SliceArgs slice = basic(whole);
    // Eager mode records nothing, so that the view is made without a call; negative strides are left to the operator.
    if (&builder == &eager_builder() && x.is_tensor()) {
        const Tensor whole = row_major(x.tensor());
        Layout layout = slice.layout(whole);
        if (std::all_of(layout.strides.begin(), layout.strides.end(), [](int64_t s) { return s >= 0; }))
            return Value(whole.view(layout.shape, layout.strides, layout.offset));
    }
    const Expr e = builder.constant(x);
    return (slice.trivial() ? builder.call("identity", {e}) : slice.get(e)).value();
}

Value index_put(Builder& builder, const Value& x, const Index& index, const Value& value) {
    Expr e = builder.constant(x);
    Index whole = completed(index, e.shape());
    Expr v = converted(builder, value, e.dtype());
    return renamed([&] {
        if (is_plain_mask(index) && v.rank() == 0) return put_under_mask(builder, e, index.items[0].tensor, v).value();
        if (is_advanced(whole)) return Advanced(builder, whole, e.shape()).put(builder, e, v).value();
        return basic(whole).put(e, v).value();
    });
}

void index_set(Tensor& x, const Index& index, const Value& value) {
    Index whole = completed(index, x.shape());
    if (is_advanced(whole)) return x.assign(kWhere, index_put(eager_builder(), Value(x), index, value).tensor());
    SliceArgs slice = basic(whole);
    Tensor v = converted(eager_builder(), value, x.dtype()).value().tensor();
    check_fits(slice.layout(x).shape, v.shape());
    x.is_exported() ? x.count_write() : x.own_storage();
    if (v.is_exported()) v = v.copy();
    Layout layout = slice.layout(x);
    Strides strides;
    strides.resize(layout.shape.rank(), 0);
    int extra = layout.shape.rank() - v.rank();
    for (int i = 0; i < v.rank(); ++i)
        if (v.dim(i) != 1) strides[i + extra] = v.strides()[i];
    copy_elements(v.view(layout.shape, strides), x.view(layout.shape, layout.strides, layout.offset));
}

}  // namespace lunaria
