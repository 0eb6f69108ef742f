#include "interpreter/loader/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "interpreter/values/values.h"

namespace lunaria {

namespace {

uint64_t mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

uint64_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace

struct Fingerprint::Walk {
    std::map<const void*, Seen> tensors;
    std::vector<const void*> path;  // tables that are being visited, outermost first
    int parts = 0;
};

void Fingerprint::Digest::add(uint64_t number) {
    one = mixed(one ^ number);
    two = mixed(two + number * 0x9E3779B97F4A7C15u + 1);
}

void Fingerprint::Digest::add_bytes(const void* data, size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    add(size);
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, bytes, sizeof word);
        add(word);
    }
    uint64_t rest = 0;
    std::memcpy(&rest, bytes, size);
    if (size > 0) add(rest);
}

void Fingerprint::Digest::add_text(std::string_view text) { add_bytes(text.data(), text.size()); }

bool Fingerprint::take(lua_State* L, int first) {
    Walk walk;
    Digest digest;
    const int top = lua_gettop(L);
    for (int i = first; i <= top; ++i) add_value(L, i, walk, digest);
    tensors_ = std::move(walk.tensors);
    const bool changed = !known_ || !(digest == last_);
    known_ = true;
    last_ = digest;
    return changed;
}

Fingerprint::Digest Fingerprint::elements_of(const Tensor& t, Walk& walk) {
    const void* body = t.body();
    const auto now = walk.tensors.find(body);
    if (now != walk.tensors.end()) return now->second.elements;
    // The tensor was kept, so that a tensor with its address is the same one.
    const auto before = tensors_.find(body);
    Seen seen{t, t.version(), {}};
    if (before != tensors_.end() && before->second.version == seen.version && !t.is_exported()) {
        seen.elements = before->second.elements;
    } else {
        const Tensor dense = t.contiguous().to_host();
        seen.elements.add(static_cast<uint64_t>(t.dtype()));
        for (int64_t n : t.shape()) seen.elements.add(static_cast<uint64_t>(n));
        seen.elements.add_bytes(dense.raw(), dense.nbytes());
    }
    return walk.tensors.emplace(body, std::move(seen)).first->second.elements;
}

void Fingerprint::add_value(lua_State* L, int index, Walk& walk, Digest& digest) {
    const int type = lua_type(L, index);
    digest.add(static_cast<uint64_t>(type));
    switch (type) {
        case LUA_TBOOLEAN:
            return digest.add(lua_toboolean(L, index) ? 1 : 0);
        case LUA_TNUMBER:
            digest.add(lua_isinteger(L, index) ? 1 : 0);
            return digest.add(lua_isinteger(L, index) ? static_cast<uint64_t>(lua_tointeger(L, index))
                                                      : std::bit_cast<uint64_t>(lua_tonumber(L, index)));
        case LUA_TSTRING: {
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            return digest.add_bytes(text, size);
        }
        case LUA_TTABLE:
            return add_table(L, index, walk, digest);
        default:
            break;
    }
    if (const Tensor* t = tensor_at(L, index)) {
        const Digest elements = elements_of(*t, walk);
        digest.add(elements.one);
        return digest.add(elements.two);
    }
    digest.add(address(lua_topointer(L, index)));
}

// Fields have no stable order, so that their digests are added up. The identity of the table does not count: an equal
// table in its place is no change.
void Fingerprint::add_table(lua_State* L, int index, Walk& walk, Digest& digest) {
    const void* self = lua_topointer(L, index);
    for (size_t i = 0; i < walk.path.size(); ++i)
        if (walk.path[i] == self) return digest.add(i + 1);
    if (walk.path.size() >= kDeepest || walk.parts >= kMostParts) return digest.add(address(self));
    luaL_checkstack(L, 4, "watch");
    walk.path.push_back(self);
    uint64_t one = 0, two = 0, count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (++walk.parts > kMostParts) {
            lua_pop(L, 2);
            break;
        }
        Digest field;
        const int top = lua_gettop(L);
        // A table as a key counts by its identity.
        if (lua_istable(L, top - 1))
            field.add(address(lua_topointer(L, top - 1)));
        else
            add_value(L, top - 1, walk, field);
        add_value(L, top, walk, field);
        one += field.one;
        two += field.two;
        ++count;
    }
    walk.path.pop_back();
    digest.add(count);
    digest.add(one);
    digest.add(two);
    if (lua_getmetatable(L, index)) {
        digest.add(address(lua_topointer(L, -1)));
        lua_pop(L, 1);
    }
}

}  // namespace lunaria
