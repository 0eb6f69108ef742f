// Small tools of steps that move or compare elements.
#pragma once

#include <cstdint>
#include <string>

#include "core/lite/runtime/plain_blocks.h"
#include "core/lite/runtime/step.h"

namespace lunaria::lite {

// Calls f with an unsigned number of that many bytes: for steps that only move elements. False: there is none.
template <class F>
bool by_width(int64_t bytes, F&& f) {
    switch (bytes) {
        case 1:
            f(uint8_t{});
            return true;
        case 2:
            f(uint16_t{});
            return true;
        case 4:
            f(uint32_t{});
            return true;
        case 8:
            f(uint64_t{});
            return true;
        default:
            return false;
    }
}

// Calls f with a number of the dtype: bools are bytes, halves are not among them.
template <class F>
bool by_number(DType t, F&& f) {
    switch (t) {
        case DType::boolean:
        case DType::u8:
            f(uint8_t{});
            return true;
        case DType::i8:
            f(int8_t{});
            return true;
        case DType::u16:
            f(uint16_t{});
            return true;
        case DType::i16:
            f(int16_t{});
            return true;
        case DType::u32:
            f(uint32_t{});
            return true;
        case DType::i32:
            f(int32_t{});
            return true;
        case DType::u64:
            f(uint64_t{});
            return true;
        case DType::i64:
            f(int64_t{});
            return true;
        case DType::f32:
            f(float{});
            return true;
        case DType::f64:
            f(double{});
            return true;
        default:
            return false;
    }
}

// One element as it lies in a register.
union Element {
    float single;
    double twice;
    int64_t whole;
    uint8_t truth;

    double real(Lane lane) const {
        if (lane == Lane::single) return static_cast<double>(single);
        return lane == Lane::twice ? twice : static_cast<double>(integer(lane));
    }
    // Of an integer or a bool.
    int64_t integer(Lane lane) const { return lane == Lane::boolean ? truth : lane == Lane::integer ? whole : 0; }
    void set(Lane lane, double x) {
        if (lane == Lane::single)
            single = static_cast<float>(x);
        else if (lane == Lane::twice)
            twice = x;
        else
            set(lane, static_cast<int64_t>(x));
    }
    void set(Lane lane, int64_t x) {
        if (lane == Lane::boolean)
            truth = x != 0;
        else if (lane == Lane::integer)
            whole = x;
        else
            set(lane, static_cast<double>(x));
    }
};

// An element of a tensor of indices.
inline int64_t index_at(const char* data, DType t, int64_t i) {
    switch (t) {
        case DType::boolean:
        case DType::u8:
            return reinterpret_cast<const uint8_t*>(data)[i];
        case DType::i8:
            return reinterpret_cast<const int8_t*>(data)[i];
        case DType::u16:
            return reinterpret_cast<const uint16_t*>(data)[i];
        case DType::i16:
            return reinterpret_cast<const int16_t*>(data)[i];
        case DType::u32:
            return reinterpret_cast<const uint32_t*>(data)[i];
        case DType::i32:
            return reinterpret_cast<const int32_t*>(data)[i];
        default:
            return reinterpret_cast<const int64_t*>(data)[i];
    }
}
// The same of an index into an axis, which counts from the end where it is negative; -1: out of range.
inline int64_t index_at(const char* data, DType t, int64_t i, int64_t size) {
    int64_t at = index_at(data, t, i);
    if (at < 0) at += size;
    return at < size ? std::max<int64_t>(at, -1) : -1;
}
inline bool is_index(DType t) { return is_integer(t) || t == DType::boolean; }

// The place of element i of axes of these sizes in an arrangement with these steps.
inline int64_t place_of(int64_t i, const std::vector<int64_t>& sizes, const std::vector<int64_t>& steps) {
    int64_t at = 0;
    for (size_t k = sizes.size(); k-- > 0;) {
        at += i % sizes[k] * steps[k];
        i /= sizes[k];
    }
    return at;
}

// A dense tensor around one axis: outer x size x inner elements.
struct Around {
    int64_t outer = 1, size = 1, inner = 1;
};
inline Around around(const std::vector<int64_t>& shape, int axis) {
    Around a;
    for (int i = 0; i < static_cast<int>(shape.size()); ++i)
        (i < axis ? a.outer : i == axis ? a.size : a.inner) *= shape[static_cast<size_t>(i)];
    return a;
}

// The attribute that names an axis, by either name.
inline int axis_of(const StepForm& form, int rank, int64_t otherwise) {
    return form.axis(form.has("axis") ? "axis" : "dim", rank, otherwise);
}

// At least so many operands and results, all there and dense.
inline bool has_operands(const StepForm& form, size_t in, size_t out, std::string& fault) {
    bool good = form.in.size() >= in && form.out.size() >= out;
    for (size_t i = 0; good && i < in; ++i) good = form.in[i].is_there() && form.in[i].is_dense();
    for (size_t i = 0; good && i < out; ++i) good = form.out[i].is_there() && form.out[i].is_dense();
    for (const Operand& o : form.in) good = good && o.form == Form::plain;
    if (!good) fault = "its operands do not fit";
    return good;
}
inline bool fits(bool holds, std::string& fault, const char* text = "its operands do not fit") {
    if (!holds && fault.empty()) fault = text;
    return holds;
}

}  // namespace lunaria::lite
