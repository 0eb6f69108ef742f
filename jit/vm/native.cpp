#include "jit/vm/native.h"

#include <cmath>

#include "jit/frontend/literals.h"

namespace lunaria {

namespace {

bool is_whole(double x) { return std::trunc(x) == x && std::abs(x) < 0x1p63; }
bool is_whole(const std::optional<lua::NumberValue>& x) {
    return x && (std::holds_alternative<int64_t>(*x) || is_whole(std::get<double>(*x)));
}

bool is(const Value& v, char kind, bool (*object_is)(const Value&, char)) {
    const bool object = v.kind() == Value::Kind::object && object_is(v, kind);
    const bool text = v.kind() == Value::Kind::string;
    switch (kind) {
        case 'N':
            return v.is_number() || v.is_tensor() || object;
        case 'I':
            return v.kind() == Value::Kind::number ? is_whole(v.number()) : is(v, 'N', object_is);
        case 'L':
            return text ? is_whole(lua::read_number(v.string())) : is(v, 'I', object_is);
        case '#':
            return text ? v.string() == "#" : is(v, 'I', object_is);
        case 'S':
            return text || object;
        case 'X':
            return v.is_tensor() || object;
        case 'T':
        case 'F':
            return object;
        default:
            return true;
    }
}

}  // namespace

bool arguments_fit(std::string_view kinds, std::span<const Value> args, bool (*object_is)(const Value&, char kind)) {
    char kind = 0;
    for (size_t at = 0, k = 0;; ++at) {
        const bool more = k < kinds.size() && kinds[k] == '*';
        if (!more) {
            if (k == kinds.size()) return true;
            kind = kinds[k++];
        } else if (at >= args.size()) {
            return true;
        }
        const bool optional = (kind >= 'a' && kind <= 'z') || kind == '-';
        if (at >= args.size() || (args[at].is_nil() && kind != 'A')) {
            if (optional) continue;
            return false;
        }
        if (kind == '-') return false;
        if (!is(args[at], optional ? static_cast<char>(kind - 'a' + 'A') : kind, object_is)) return false;
    }
}

}  // namespace lunaria
