// Messages of Protocol Buffers as data: a message is a struct, its fields are a table of numbers and members, and one
// loop reads or writes it. Fields that the table lacks are skipped; fields are written in the table's order.
//
//   proto::Fields<Opset> Opset::fields() {
//       static constexpr proto::Field<Opset> list[] = {proto::field<&Opset::domain>(1), ...};
//       return list;
//   }
//
// A struct may have `static M read(ProtoReader)` or `ProtoWriter message() const` if it consists of more than its
// fields.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "core/io/protobuf.h"

namespace lunaria::proto {

template <class M>
struct Field {
    uint32_t number;
    void (*read)(M&, const ProtoReader&);                              // null: is skipped
    void (*write)(const M&, uint32_t number, ProtoWriter&) = nullptr;  // null: is not written
};

template <class M>
using Fields = std::span<const Field<M>>;

template <class M>
void read_fields(ProtoReader p, M& m, std::type_identity_t<Fields<M>> fields) {
    while (p.next())
        if (const auto f = std::ranges::find(fields, p.field(), &Field<M>::number); f != fields.end() && f->read)
            f->read(m, p);
}

template <class M>
M read_message(ProtoReader p) {
    if constexpr (requires { M::read(p); }) {
        return M::read(std::move(p));
    } else {
        M m;
        read_fields(std::move(p), m, M::fields());
        return m;
    }
}

template <class M>
ProtoWriter written(const M& m, std::type_identity_t<Fields<M>> fields) {
    ProtoWriter w;
    for (const Field<M>& f : fields)
        if (f.write) f.write(m, f.number, w);
    return w;
}

template <class M>
ProtoWriter message_of(const M& m) {
    if constexpr (requires { m.message(); })
        return m.message();
    else
        return written(m, M::fields());
}

// The content of a field by the member's type: a text, a number, an enumerator, a message, or a list of them, which is
// a repeated field.
template <class T>
void read_value(T& value, const ProtoReader& p) {
    if constexpr (std::is_same_v<T, std::string>)
        value = p.text();
    else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
        value = static_cast<T>(p.integer());
    else if constexpr (std::is_same_v<T, float>)
        value = p.float32();
    else if constexpr (std::is_same_v<T, double>)
        value = p.float64();
    else
        value = read_message<T>(p.message());
}
template <class T>
void read_value(std::optional<T>& value, const ProtoReader& p) {
    read_value(value.emplace(), p);
}
template <class T>
void read_value(std::vector<T>& list, const ProtoReader& p) {
    if constexpr (std::is_same_v<T, int64_t>)
        p.integers(list);
    else if constexpr (std::is_same_v<T, float>)
        p.floats(list);
    else if constexpr (std::is_same_v<T, double>)
        p.doubles(list);
    else
        read_value(list.emplace_back(), p);
}

template <class T>
void write_value(const T& value, uint32_t number, ProtoWriter& w) {
    if constexpr (std::is_same_v<T, std::string>)
        w.bytes(number, value);
    else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
        w.integer(number, static_cast<int64_t>(value));
    else if constexpr (std::is_same_v<T, float>)
        w.float32(number, value);
    else if constexpr (std::is_same_v<T, double>)
        w.float64(number, value);
    else
        w.message(number, message_of(value));
}
template <class T>
void write_value(const std::optional<T>& value, uint32_t number, ProtoWriter& w) {
    if (value) write_value(*value, number, w);
}
template <class T>
void write_value(const std::vector<T>& list, uint32_t number, ProtoWriter& w) {
    for (const T& value : list) write_value(value, number, w);
}

template <auto member, class M, class T>
constexpr Field<M> field_of(uint32_t number, T M::*) {
    return {number, [](M& m, const ProtoReader& p) { read_value(m.*member, p); },
            [](const M& m, uint32_t n, ProtoWriter& w) { write_value(m.*member, n, w); }};
}
template <auto member, class M>
constexpr Field<M> filled_of(uint32_t number, std::string M::*) {
    return {number, [](M& m, const ProtoReader& p) { m.*member = p.text(); },
            [](const M& m, uint32_t n, ProtoWriter& w) {
                if (!(m.*member).empty()) w.bytes(n, m.*member);
            }};
}
template <auto member, class M, class T>
constexpr Field<M> bytes_of(uint32_t number, T M::*) {
    return {number, [](M& m, const ProtoReader& p) {
                if constexpr (requires { (m.*member).emplace_back(p.bytes()); })
                    (m.*member).emplace_back(p.bytes());
                else
                    m.*member = p.bytes();
            }};
}

// The member is the field's content.
template <auto member>
constexpr auto field(uint32_t number) {
    return field_of<member>(number, member);
}
// A text that is written only if it is not empty.
template <auto member>
constexpr auto filled(uint32_t number) {
    return filled_of<member>(number, member);
}
// Bytes that need not be UTF-8; only for reading.
template <auto member>
constexpr auto bytes(uint32_t number) {
    return bytes_of<member>(number, member);
}

}  // namespace lunaria::proto
