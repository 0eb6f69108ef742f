// The fields of a light model in the order of the file, once for the writer and the reader. An archive takes whole
// numbers, texts and doubles; `A::kReads` says which way they go.
#pragma once

#include <type_traits>

#include "core/lite/format/model.h"
#include "core/loops/describe.h"

namespace lunaria::lite {

struct Archive {};  // the base of archives, by which the functions below are found

template <class A, class T>
requires std::is_integral_v<T>
void describe(A& a, T& v) {
    // Zigzag: small negative numbers are short.
    if constexpr (A::kReads) {
        const uint64_t n = a.number();
        if constexpr (std::is_same_v<T, bool>) {
            if (n > 1) a.refuse("a flag is neither true nor false");
            v = n != 0;
        } else if constexpr (std::is_unsigned_v<T>) {
            v = static_cast<T>(n);
            if (v != n) a.refuse("a number is out of range");
        } else {
            const auto whole = static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1);
            v = static_cast<T>(whole);
            if (static_cast<int64_t>(v) != whole) a.refuse("a number is out of range");
        }
    } else if constexpr (std::is_unsigned_v<T>) {
        a.number(v);
    } else {
        const auto whole = static_cast<int64_t>(v);
        a.number(static_cast<uint64_t>(whole) << 1 ^ static_cast<uint64_t>(whole >> 63));
    }
}
template <class A, class T>
requires requires(A& a, T& v) { a(v); }
void describe(A& a, T& v) { a(v); }

// An index of which kNone is none.
template <class A>
void index(A& a, uint32_t& v) {
    if constexpr (A::kReads) {
        const uint64_t n = a.number();
        if (n > UINT32_MAX) a.refuse("an index is out of range");
        v = static_cast<uint32_t>(n) - 1;
    } else {
        a.number(static_cast<uint32_t>(v + 1));
    }
}
// Enumerators up to `last`.
template <class A, class T>
void one_of(A& a, T& v, T last) {
    if constexpr (A::kReads) {
        const uint64_t n = a.number();
        if (n > static_cast<uint64_t>(last)) return a.refuse("there is no such kind");
        v = static_cast<T>(n);
    } else {
        a.number(static_cast<uint64_t>(v));
    }
}
template <class A, class T, class F>
void list(A& a, std::vector<T>& items, F&& describe_item) {
    if constexpr (A::kReads) {
        for (size_t n = a.count(); n > 0 && !a.has_failed(); --n) describe_item(a, items.emplace_back());
    } else {
        a.number(items.size());
        for (T& item : items) describe_item(a, item);
    }
}
inline constexpr auto kDescribe = [](auto& a, auto& item) { describe(a, item); };
template <class A, class T>
void describe(A& a, std::vector<T>& items) {
    list(a, items, kDescribe);
}
template <class A, class... Field>
void fields(A& a, Field&... field) {
    (describe(a, field), ...);
}

template <class A>
void describe(A& a, DType& v) {
    one_of(a, v, DType::c128);
}
template <class A>
void describe(A& a, Number& n) {
    describe(a, n.value);
    index(a, n.formula);
}
template <class A>
void describe(A& a, Formula::Term& t) {
    one_of(a, t.kind, Formula::Kind::most);
    describe(a, t.value);
}
template <class A>
void describe(A& a, Formula& f) {
    describe(a, f.terms);
}
template <class A>
void describe(A& a, Dimension& d) {
    fields(a, d.name, d.size, d.least, d.most, d.step);
}
template <class A>
void describe(A& a, Quantization& q) {
    fields(a, q.bits, q.axis);
    index(a, q.scales);
    index(a, q.zeros);
}
template <class A>
void describe(A& a, Value& v) {
    a.at(v);
    fields(a, v.name, v.dtype);
    one_of(a, v.form, Form::q4_0);
    one_of(a, v.home, Value::Home::output);
    describe(a, v.shape);
    index(a, v.quantization);
    index(a, v.shares);
    a.stored(v.data, v.bytes);
}
template <class A>
void describe(A& a, View& v) {
    index(a, v.value);
    describe(a, v.whole);
    if (!v.whole) fields(a, v.shape, v.strides, v.offset);
}
template <class A>
void describe(A& a, Attribute& v) {
    describe(a, v.name);
    one_of(a, v.kind, Attribute::Kind::text);
    if (v.kind == Attribute::Kind::integers) describe(a, v.integers);
    if (v.kind == Attribute::Kind::numbers) describe(a, v.numbers);
    if (v.kind == Attribute::Kind::text) describe(a, v.text);
}
template <class A>
void describe(A& a, Patch& p) {
    describe(a, p.instruction);
    one_of(a, p.field, Patch::Field::stride);
    describe(a, p.value);
}
template <class A>
void describe(A& a, Step& s) {
    a.at(s);
    fields(a, s.kind, s.operands, s.results, s.attributes);
    index(a, s.loop);
    fields(a, s.sizes, s.patches, s.label, s.node, s.source, s.nodes, s.flops);
}
template <class A>
void describe(A& a, Code& c) {
    describe(a, c.target);
    a.stored(c.data, c.bytes);
}
template <class A>
void describe(A& a, Loop& l) {
    fields(a, l.program, l.codes);
}
template <class A>
void describe(A& a, Model& m) {
    fields(a, m.dimensions, m.formulas, m.quantizations, m.values, m.inputs, m.outputs, m.loops, m.steps, m.properties);
}

}  // namespace lunaria::lite
