// Transforms of any values: numbers, tensors, texts and lists of texts.
#include <cmath>
#include <cstring>
#include <map>

#include "core/data/transforms/step.h"

namespace lunaria::transforms {

namespace {

const Tensor& tensor_of(const Value& value, const Arguments& a) {
    if (!value.is_tensor()) throw argument_error(a.where, str("a tensor is expected, got ", to_string(value)));
    return value.tensor();
}

DType dtype_text(const Arguments& a, size_t at) { return *parse_dtype(a.texts[at]); }

void run_type_cast(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) value = Value(tensor_of(value, a).cast(dtype_text(a, 0)));
}

// number of classes, share of the other classes
void run_one_hot(Row& row, const Arguments& a, RowDraws&) {
    const int64_t classes = a.integer(0);
    const double smooth = a.number(1);
    for (Value& value : row) {
        const Tensor labels = tensor_of(value, a).contiguous();
        if (!is_integer(labels.dtype()))
            throw dtype_error(a.where, str("numbers of classes must be integers, got ", name_of(labels.dtype())));
        Shape shape = labels.shape();
        shape.push_back(classes);
        Tensor out =
            Tensor::full(smooth == 0 ? labels.dtype() : DType::f32, shape, smooth / static_cast<double>(classes));
        for (int64_t i = 0; i < labels.size(); ++i) {
            const int64_t label = labels.integer_at(i);
            if (label < 0 || label >= classes)
                throw index_error(a.where, str("class ", label, " is out of range: num_classes is ", classes));
            out.set_at(i * classes + label, 1 - smooth + smooth / static_cast<double>(classes));
        }
        value = Value(out);
    }
}

void run_duplicate(Row& row, const Arguments&, RowDraws&) {
    const Value same = row[0];
    row.push_back(same);
}

size_t two(const Arguments& a, size_t inputs) {
    if (inputs != 1) throw argument_error(a.where, str("one value is expected, got ", inputs, " columns"));
    return 2;
}

// A number, or a text for texts.
void run_fill(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) {
        if (value.is_tensor()) {
            if (!a.texts.empty()) throw argument_error(a.where, "fill_value is a text, but the value is a tensor");
            value = Value(Tensor::full(value.tensor().dtype(), value.tensor().shape(), a.number(0)));
            continue;
        }
        if (a.texts.empty()) throw argument_error(a.where, "fill_value is a number, but the value is a text");
        if (value.is_list())
            value = Value::list(std::vector<Value>(value.items().size(), Value(std::string_view(a.texts[0]))));
        else
            value = Value(std::string_view(a.texts[0]));
    }
}

template <class T>
bool holds(int64_t relation, const T& x, const T& y) {
    switch (relation) {
        case 0:
            return x == y;
        case 1:
            return x != y;
        case 2:
            return x > y;
        case 3:
            return x >= y;
        case 4:
            return x < y;
        default:
            return x <= y;
    }
}

// relation, number; dtype, text
void run_mask(Row& row, const Arguments& a, RowDraws&) {
    const int64_t relation = a.integer(0);
    for (Value& value : row) {
        Tensor out;
        if (value.is_tensor()) {
            if (a.texts.size() > 1) throw argument_error(a.where, "constant is a text, but the value is a tensor");
            const Tensor in = value.tensor().contiguous();
            out = Tensor::empty(DType::boolean, in.shape());
            for (int64_t i = 0; i < in.size(); ++i) out.data<bool>()[i] = holds(relation, in.at(i), a.number(1));
        } else {
            if (a.texts.size() < 2) throw argument_error(a.where, "constant is a number, but the value is a text");
            const bool list = value.is_list();
            const std::vector<Value> items = list ? value.items() : std::vector<Value>{value};
            out = Tensor::empty(DType::boolean, list ? Shape{static_cast<int64_t>(items.size())} : Shape{});
            for (size_t i = 0; i < items.size(); ++i)
                out.data<bool>()[i] = holds(relation, items[i].string(), a.texts[1]);
        }
        value = Value(out.cast(dtype_text(a, 0)));
    }
}

std::vector<Value> cut_list(const std::vector<Value>& items, size_t length, std::string_view fill) {
    std::vector<Value> list(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(std::min(length, items.size())));
    while (list.size() < length) list.emplace_back(fill);
    return list;
}

// value, then a size for each axis (-1: unchanged); longer axes are cut
void run_pad_end(Row& row, const Arguments& a, RowDraws&) {
    const size_t axes = a.numbers.size() - 1;
    for (Value& value : row) {
        if (value.is_list()) {
            if (axes != 1) throw shape_error(a.where, str("pad_shape has ", axes, " sizes for a list of texts"));
            if (a.number(1) >= 0)
                value = Value::list(
                    cut_list(value.items(), static_cast<size_t>(a.integer(1)), a.texts.empty() ? "" : a.texts[0]));
            continue;
        }
        const Tensor in = tensor_of(value, a);
        if (static_cast<size_t>(in.rank()) != axes)
            throw shape_error(a.where, str("pad_shape has ", axes, " sizes for a tensor of shape ", in.shape()));
        if (!a.texts.empty()) throw argument_error(a.where, "pad_value is a text, but the value is a tensor");
        Shape shape = in.shape(), common = in.shape();
        for (int i = 0; i < in.rank(); ++i) {
            if (a.integer(static_cast<size_t>(i) + 1) >= 0) shape[i] = a.integer(static_cast<size_t>(i) + 1);
            common[i] = std::min(shape[i], in.dim(i));
        }
        checked_shape(a.where, shape.dims());
        const Tensor out = Tensor::full(in.dtype(), shape, a.number(0));
        if (common.size() > 0) copy_elements(in.view(common, in.strides()), out.view(common, out.strides()));
        value = Value(out);
    }
}

// axis, has something in front, has something behind
void run_concatenate(Row& row, const Arguments& a, RowDraws&) {
    std::vector<Tensor> parts;
    size_t given = 0;
    if (a.flag(1)) parts.push_back(a.tensors[given++]);
    for (const Value& value : row) parts.push_back(tensor_of(value, a));
    if (a.flag(2)) parts.push_back(a.tensors[given]);
    const Tensor& first = tensor_of(row[0], a);
    if (first.rank() == 0) throw shape_error(a.where, "a tensor with axes is expected, got a scalar");
    const int axis = normal_axis(a.where, a.integer(0), first.rank());
    Shape shape = first.shape();
    shape[axis] = 0;
    for (Tensor& part : parts) {
        Shape other = part.shape();
        if (part.rank() == first.rank()) other[axis] = first.dim(axis);
        if (other != first.shape())
            throw shape_error(a.where, str("the parts have shapes ", part.shape(), " and ", first.shape(),
                                           ", which differ in other axes than ", axis));
        part = part.cast(first.dtype());
        shape[axis] += part.dim(axis);
    }
    const Tensor out = Tensor::empty(first.dtype(), shape);
    int64_t at = 0;
    for (const Tensor& part : parts) {
        if (part.size() > 0) copy_elements(part, out.view(part.shape(), out.strides(), at * out.strides()[axis]));
        at += part.dim(axis);
    }
    row.clear();
    row.emplace_back(out);
}

size_t one(const Arguments&, size_t) { return 1; }

// Distinct values in the order of their first occurrence, the place of that, and the number of occurrences.
void run_unique(Row& row, const Arguments& a, RowDraws&) {
    const Tensor in = tensor_of(row[0], a).contiguous();
    if (is_complex(in.dtype())) throw dtype_error(a.where, "complex numbers have no order");
    std::map<std::string, int32_t> places;
    std::vector<int64_t> firsts;
    std::vector<int32_t> indices, counts;
    const size_t size = size_of(in.dtype());
    for (int64_t i = 0; i < in.size(); ++i) {
        const std::string key(in.data<char>() + static_cast<size_t>(i) * size, size);
        const auto [it, is_new] = places.try_emplace(key, static_cast<int32_t>(firsts.size()));
        if (is_new) firsts.push_back(i), counts.push_back(0);
        indices.push_back(it->second);
        ++counts[static_cast<size_t>(it->second)];
    }
    const Tensor values = Tensor::empty(in.dtype(), {static_cast<int64_t>(firsts.size())});
    for (size_t k = 0; k < firsts.size(); ++k)
        std::memcpy(values.data<char>() + k * size, in.data<char>() + static_cast<size_t>(firsts[k]) * size, size);
    row.clear();
    row.emplace_back(values);
    row.emplace_back(Tensor::from<int32_t>(indices, {static_cast<int64_t>(indices.size())}));
    row.emplace_back(Tensor::from<int32_t>(counts, {static_cast<int64_t>(counts.size())}));
}

size_t three(const Arguments& a, size_t inputs) {
    two(a, inputs);
    return 3;
}

// One axis of a slice: either places (kind 1, count, places) or start, stop and step (kind 0), in which 2 marks a
// number that is not given.
struct Axis {
    std::vector<int64_t> places;
};

constexpr double kNotGiven = 1e15;

int64_t bound(double given, int64_t size, int64_t otherwise, int64_t least, int64_t most) {
    if (given == kNotGiven) return otherwise;
    const auto at = static_cast<int64_t>(given);
    return std::clamp(at < 0 ? at + size : at, least, most);
}

Axis axis_of(const Arguments& a, size_t& at, int64_t size) {
    Axis axis;
    if (a.number(at) == 1) {
        const auto count = static_cast<size_t>(a.integer(at + 1));
        for (size_t i = 0; i < count; ++i) {
            const int64_t place = a.integer(at + 2 + i);
            if (place < -size || place >= size)
                throw index_error(a.where, str("index ", place, " is out of range for an axis of size ", size));
            axis.places.push_back(place < 0 ? place + size : place);
        }
        at += 2 + count;
        return axis;
    }
    const int64_t step = a.integer(at + 3);
    const bool forward = step > 0;
    const int64_t begin =
        bound(a.number(at + 1), size, forward ? 0 : size - 1, forward ? 0 : -1, forward ? size : size - 1);
    const int64_t end = bound(a.number(at + 2), size, forward ? size : -1, forward ? 0 : -1, forward ? size : size - 1);
    for (int64_t i = begin; forward ? i < end : i > end; i += step) axis.places.push_back(i);
    at += 4;
    return axis;
}

Tensor taken(const Tensor& in, int axis, const std::vector<int64_t>& places) {
    Shape shape = in.shape(), single = in.shape();
    shape[axis] = static_cast<int64_t>(places.size());
    single[axis] = 1;
    const Tensor out = Tensor::empty(in.dtype(), shape);
    if (out.size() == 0) return out;
    for (size_t i = 0; i < places.size(); ++i)
        copy_elements(in.view(single, in.strides(), places[i] * in.strides()[axis]),
                      out.view(single, out.strides(), static_cast<int64_t>(i) * out.strides()[axis]));
    return out;
}

void run_slice(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) {
        size_t at = 0;
        if (value.is_list()) {
            const Axis axis = axis_of(a, at, static_cast<int64_t>(value.items().size()));
            std::vector<Value> list;
            for (int64_t place : axis.places) list.push_back(value.items()[static_cast<size_t>(place)]);
            value = Value::list(std::move(list));
            continue;
        }
        Tensor t = tensor_of(value, a);
        for (int axis = 0; at < a.numbers.size(); ++axis) {
            if (axis >= t.rank())
                throw index_error(a.where, str("there are more slices than axes of the shape ", t.shape()));
            t = taken(t, axis, axis_of(a, at, t.dim(axis)).places);
        }
        value = Value(t);
    }
}

}  // namespace

std::span<const Entry> value_entries() {
    static const Entry entries[] = {
        {"type_cast", 0, run_type_cast},
        {"one_hot", 2, run_one_hot},
        {"duplicate", 0, run_duplicate, 0, two},
        {"fill", 1, run_fill},
        {"mask", 2, run_mask},
        {"pad_end", 1, run_pad_end},
        {"concatenate", 3, run_concatenate, 0, one},
        {"unique", 0, run_unique, 0, three},
        {"slice", 3, run_slice},
    };
    return entries;
}

}  // namespace lunaria::transforms
