// Signatures of operators as text, checked when the program is compiled:
//
//     softmax(x: float, axis/dim: int = -1, *, dtype: dtype? = nil)
//     cross_entropy(logits: float, labels: tensor, reduction: "mean"|"sum"|"none" = "mean")
//
// A parameter is `name/other_name: type`, optional with `?` or a default. Parameters after `*` are given by name only.
// After `)` an operator with several results names them: `-> (values, indices)`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria {

enum class ArgType : uint8_t {
    // Tensors. A Lua number is accepted wherever a tensor is (it adapts to the other operands' dtype).
    same,     // "same":   all `same` and `float` operands of a call are converted to one dtype (promote)
    real,     // "float":  as `same`, and integers and bools become f32
    tensor,   // "tensor": any dtype, left as it is
    index,    // "index":  integer tensor, converted to i64
    mask,     // "mask":   bool tensor
    tensors,  // "tensors": list of tensors, converted to one dtype
    // Attributes.
    boolean,  // "bool"
    integer,  // "int"
    number,   // "number"  (integer or float; stays what it is)
    string,   // "string", or the list of its choices: "mean"|"sum"|"none"
    dtype,    // "dtype"   (a dtype or its name)
    ints,     // "ints"    list of integers; a single integer counts as a list of one
    numbers,  // "numbers" list of numbers; a single number counts as a list of one
    shape,    // "shape"   as ints; a call may also spell the sizes out: randn(2, 3)
    scalar,   // "scalar"  number or bool
    any,      // "any"     whatever was given (also int-or-list attributes that the operator tells apart)
};

constexpr bool is_tensor_type(ArgType t) { return t <= ArgType::tensors; }

struct Param {
    std::string_view name;
    std::vector<std::string_view> other_names;
    ArgType type = ArgType::any;
    bool optional = false;     // `?`: nil is allowed
    bool has_default = false;  // may be left out
    bool by_name_only = false;
    Value default_value;
    std::vector<std::string_view> choices;  // of a string

    bool answers_to(std::string_view n) const;
};

struct Signature {
    std::string_view name;
    std::vector<Param> params;
    std::vector<std::string_view> results;  // empty: one result without a name
    std::string_view text;

    int find(std::string_view param) const;  // position of the parameter with this name or other name, or -1
};

namespace detail {
// Walks over the grammar; calling it with a malformed text in a constant expression is a compile-time error.
constexpr bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct SignatureScan {
    const char* p;
    bool ok = true;

    constexpr void spaces() {
        while (*p == ' ') ++p;
    }
    constexpr bool eat(char c) {
        spaces();
        if (*p != c) return false;
        ++p;
        return true;
    }
    constexpr std::string_view word() {
        spaces();
        const char* start = p;
        while (word_char(*p)) ++p;
        if (p == start) ok = false;
        return {start, static_cast<size_t>(p - start)};
    }
    constexpr void quoted() {
        if (!eat('"')) ok = false;
        while (*p && *p != '"') ++p;
        if (*p == '"')
            ++p;
        else
            ok = false;
    }
    constexpr void literal() {
        spaces();
        if (*p == '"') return quoted();
        if (*p == '{') {
            ++p;
            spaces();
            if (eat('}')) return;
            do literal();
            while (ok && eat(','));
            if (!eat('}')) ok = false;
            return;
        }
        const char* start = p;
        while (word_char(*p) || *p == '-' || *p == '+' || *p == '.') ++p;
        if (p == start) ok = false;
    }
    constexpr void type() {
        spaces();
        if (*p == '"') {
            do quoted();
            while (ok && eat('|'));
        } else {
            constexpr std::string_view kTypes[] = {"same",    "float", "tensor", "index",  "mask",  "tensors",
                                                   "bool",    "int",   "number", "string", "dtype", "ints",
                                                   "numbers", "shape", "scalar", "any"};
            std::string_view w = word();
            bool known = false;
            for (auto t : kTypes) known |= t == w;
            ok &= known;
        }
        eat('?');
    }
    constexpr void parameter() {
        spaces();
        if (*p == '*') {
            ++p;
            return;
        }
        do word();
        while (ok && eat('/'));
        if (!eat(':')) ok = false;
        type();
        if (eat('=')) literal();
    }
    constexpr bool whole() {
        word();
        if (!eat('(')) return false;
        if (!eat(')')) {
            do parameter();
            while (ok && eat(','));
            if (!eat(')')) return false;
        }
        spaces();
        if (*p == '-') {
            ++p;
            if (!eat('>') || !eat('(')) return false;
            do word();
            while (ok && eat(','));
            if (!eat(')')) return false;
        }
        spaces();
        return ok && *p == 0;
    }
};
}  // namespace detail

// A literal text that has been checked by the compiler.
struct SignatureText {
    const char* text;
    consteval SignatureText(const char* t) : text(t) {
        if (!detail::SignatureScan{t}.whole()) throw "malformed operator signature";
    }
};

Signature parse_signature(SignatureText text);

// Reads nil, true, 1, -2.5, inf, "text" or {…} at `text` and moves `text` past it. Throws argument_error.
Value parse_literal(std::string_view& text);

}  // namespace lunaria
