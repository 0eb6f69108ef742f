// The module behind lunaria/federated/vertical/: channels between parties, their messages, the intersection of ids,
// products of shares.
#include <map>

#include "core/base/error.h"
#include "core/federated/compression.h"
#include "core/federated/vertical/channel.h"
#include "core/federated/vertical/masked_products.h"
#include "core/federated/vertical/party_message.h"
#include "core/federated/vertical/psi.h"
#include "core/io/socket.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using namespace federated;

constexpr const char* kListenerHandle = "lunaria.vertical.listener";
constexpr const char* kChannelHandle = "lunaria.vertical.channel";
constexpr const char* kIntersectionHandle = "lunaria.vertical.intersection";
using ListenerHandle = std::unique_ptr<Descriptor>;
using ChannelHandle = std::unique_ptr<Channel>;
using IntersectionHandle = std::unique_ptr<PrivateIntersection>;

std::string_view view_at(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

template <class Handle>
auto& open_at(lua_State* L, const char* type, std::string_view what) {
    const Handle& handle = handle_at<Handle>(L, 1, type);
    if (!handle) throw state_error("channel", str(what, " was closed"));
    return *handle;
}

template <class Handle, const char* const& type>
int close_handle(lua_State* L) {
    handle_at<Handle>(L, 1, type).reset();
    return 0;
}

// The seed at `index`: 32 bytes.
Secret seed_bytes_at(lua_State* L, int index) {
    const std::string_view bytes = view_at(L, index);
    if (bytes.size() != sizeof(Bytes32)) throw value_error("vertical", str("a seed has 32 bytes, not ", bytes.size()));
    return Secret::of(bytes);
}

// listen(address) -> a listener, its port. Port 0: any that is free.
int listen(lua_State* L) {
    const std::string host(view_at(L, 1));
    const auto port = static_cast<int>(luaL_checkinteger(L, 2));
    auto socket = std::make_unique<Descriptor>(listen_at(host, port).release());
    if (!*socket) throw state_error("channel", str("the port ", port, " of ", host, " is taken"));
    lua_pushinteger(L, port_of(*socket));
    push_handle<ListenerHandle>(L, std::move(socket), kListenerHandle);
    lua_insert(L, -2);
    return 2;
}

int split(lua_State* L) {
    const auto [host, port] = split_address(view_at(L, 1));
    push(L, std::string_view(host));
    lua_pushinteger(L, port);
    return 2;
}

// The table { own =, seconds =, most =, keys = { name = key } } at `index`.
ChannelOptions options_at(lua_State* L, int index, std::map<std::string, std::string>& keys) {
    ChannelOptions options;
    lua_getfield(L, index, "own");
    options.own_name = view_at(L, -1);
    lua_getfield(L, index, "seconds");
    options.seconds = luaL_checknumber(L, -1);
    lua_getfield(L, index, "most");
    options.most = static_cast<size_t>(luaL_checkinteger(L, -1));
    lua_getfield(L, index, "keys");
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        keys[std::string(view_at(L, -2))] = view_at(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 4);
    options.key_of = [&keys](const std::string& peer) {
        const auto found = keys.find(peer);
        return found == keys.end() ? std::string() : found->second;
    };
    return options;
}

void wipe_all(std::map<std::string, std::string>& keys) {
    for (auto& [name, key] : keys) wipe(key);
}

// accept(listener, options) -> a channel, the name of the party
int accept(lua_State* L) {
    const Descriptor& listener = open_at<ListenerHandle>(L, kListenerHandle, "the listener");
    std::map<std::string, std::string> keys;
    const ChannelOptions options = options_at(L, 2, keys);
    auto channel = accept_party(listener, options);
    wipe_all(keys);
    const std::string peer = channel->peer();
    push_handle<ChannelHandle>(L, std::move(channel), kChannelHandle);
    push(L, std::string_view(peer));
    return 2;
}

// call(host, port, peer, options) -> a channel
int call(lua_State* L) {
    std::map<std::string, std::string> keys;
    const ChannelOptions options = options_at(L, 4, keys);
    auto channel = call_party(std::string(view_at(L, 1)), static_cast<int>(luaL_checkinteger(L, 2)),
                              std::string(view_at(L, 3)), options);
    wipe_all(keys);
    push_handle<ChannelHandle>(L, std::move(channel), kChannelHandle);
    return 1;
}

int send(lua_State* L) {
    open_at<ChannelHandle>(L, kChannelHandle, "the channel").send(view_at(L, 2));
    return 0;
}

int receive(lua_State* L) {
    const std::string message = open_at<ChannelHandle>(L, kChannelHandle, "the channel").receive();
    push(L, std::string_view(message));
    return 1;
}

PartyValue party_value_at(lua_State* L, int index, std::string_view name) {
    if (const Tensor* tensor = tensor_at(L, index)) return tensor->to_host().contiguous();
    if (lua_isinteger(L, index)) return static_cast<int64_t>(lua_tointeger(L, index));
    if (lua_type(L, index) == LUA_TNUMBER) return static_cast<double>(lua_tonumber(L, index));
    if (lua_type(L, index) == LUA_TSTRING) return std::string(view_at(L, index));
    throw argument_error("send", str("'", name, "' must be a tensor, a number or a text, got ", describe(L, index)));
}

// pack(kind, values) -> bytes
int pack_message(lua_State* L) {
    PartyMessage message{std::string(view_at(L, 1)), {}};
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 2)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            throw argument_error("send", str("the name of a value must be a text, got ", describe(L, -2)));
        std::string name(view_at(L, -2));
        PartyValue value = party_value_at(L, lua_gettop(L), name);
        message.values.emplace_back(std::move(name), std::move(value));
        lua_pop(L, 1);
    }
    std::ranges::sort(message.values, {}, [](const auto& pair) -> const std::string& { return pair.first; });
    const std::string bytes = text_of(message);
    push(L, std::string_view(bytes));
    return 1;
}

// unpack(bytes, from) -> kind, values
int unpack_message(lua_State* L) {
    PartyMessage message = read_party_message(view_at(L, 1), view_at(L, 2));
    push(L, std::string_view(message.kind));
    lua_createtable(L, 0, static_cast<int>(message.values.size()));
    for (auto& [name, value] : message.values) {
        push(L, std::string_view(name));
        if (auto* tensor = std::get_if<Tensor>(&value))
            push(L, tensor->to(current_place()));
        else if (const auto* text = std::get_if<std::string>(&value))
            push(L, std::string_view(*text));
        else if (const auto* integer = std::get_if<int64_t>(&value))
            lua_pushinteger(L, *integer);
        else
            lua_pushnumber(L, std::get<double>(value));
        lua_rawset(L, -3);
    }
    return 2;
}

// intersection(ids, is_first, first_learns, second_learns, bins, scalar or nil) -> a side of the protocol
int intersection(lua_State* L) {
    std::vector<std::string> ids;
    luaL_checktype(L, 1, LUA_TTABLE);
    const auto count = static_cast<lua_Integer>(lua_rawlen(L, 1));
    ids.reserve(static_cast<size_t>(count));
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_rawgeti(L, 1, i);
        ids.emplace_back(view_at(L, -1));
        lua_pop(L, 1);
    }
    PsiOptions options;
    options.is_first = lua_toboolean(L, 2);
    options.first_learns = lua_toboolean(L, 3);
    options.second_learns = lua_toboolean(L, 4);
    options.bins = luaL_checkinteger(L, 5);
    if (!lua_isnoneornil(L, 6)) {
        const std::string_view bytes = view_at(L, 6);
        Bytes64 wide{};
        std::ranges::copy(bytes.substr(0, wide.size()), wide.begin());
        options.scalar = primitives("psi").scalar(wide);
    }
    push_handle<IntersectionHandle>(L, std::make_unique<PrivateIntersection>(ids, options), kIntersectionHandle);
    return 1;
}

PrivateIntersection& side_at(lua_State* L) { return *handle_at<IntersectionHandle>(L, 1, kIntersectionHandle); }

// next_message(side) -> bytes or nil
int next_message(lua_State* L) {
    const auto message = side_at(L).next();
    if (message)
        push(L, std::string_view(*message));
    else
        lua_pushnil(L);
    return 1;
}

int take_message(lua_State* L) {
    side_at(L).take(view_at(L, 2));
    return 0;
}

// result(side) -> whether it is done, the positions of the common ids from 1, how many ids the other side has at most
int result(lua_State* L) {
    const PrivateIntersection& side = side_at(L);
    lua_pushboolean(L, side.is_done());
    const auto& common = side.common();
    lua_createtable(L, static_cast<int>(common.size()), 0);
    for (size_t i = 0; i < common.size(); ++i) {
        lua_pushinteger(L, static_cast<lua_Integer>(common[i]) + 1);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_pushinteger(L, side.other_ids());
    return 3;
}

Tensor shares_at(lua_State* L, int index) { return check_tensor(L, index, "vertical", "shares").to_host(); }

// drawn(seed, purpose, number, count)
int drawn(lua_State* L) {
    const lua_Integer count = least_at(L, 4, 0);
    push(L, drawn_integers(seed_bytes_at(L, 1), view_at(L, 2), luaL_checkinteger(L, 3), count).to(current_place()));
    return 1;
}
// masked(matrix, seed)
int masked(lua_State* L) {
    push(L, masked_matrix(shares_at(L, 1), seed_bytes_at(L, 2)).to(current_place()));
    return 1;
}
// mask_times(seed, rows, vectors)
int mask_times(lua_State* L) {
    push(L, mask_product(seed_bytes_at(L, 1), least_at(L, 2, 0), shares_at(L, 3)).to(current_place()));
    return 1;
}
int times(lua_State* L) {
    push(L, ring_product(shares_at(L, 1), shares_at(L, 2)).to(current_place()));
    return 1;
}
// histogram(columns, width, vectors)
int histogram(lua_State* L) {
    push(L, ring_histogram(shares_at(L, 1), luaL_checkinteger(L, 2), shares_at(L, 3)).to(current_place()));
    return 1;
}
int sum(lua_State* L) {
    push(L, ring_sum(shares_at(L, 1), shares_at(L, 2)).to(current_place()));
    return 1;
}
int difference(lua_State* L) {
    push(L, ring_difference(shares_at(L, 1), shares_at(L, 2)).to(current_place()));
    return 1;
}
// to_fixed(x, bits), from_fixed(x, bits)
int fixed(lua_State* L) {
    push(L, to_fixed(shares_at(L, 1), static_cast<int>(luaL_checkinteger(L, 2))).to(current_place()));
    return 1;
}
int real(lua_State* L) {
    push(L, from_fixed(shares_at(L, 1), static_cast<int>(luaL_checkinteger(L, 2))).to(current_place()));
    return 1;
}

// few_bits(x, bits, is_packed) -> bytes, the least and the greatest element. x: float64. Packed: so many bits each,
// else a byte each.
int few_bits(lua_State* L) {
    const Tensor x = shares_at(L, 1).to_host().contiguous();
    if (x.dtype() != DType::f64) throw dtype_error("send_tensors", "float64 is expected");
    const auto bits = static_cast<int>(luaL_checkinteger(L, 2));
    const Quantised q =
        quantised("send_tensors", std::span<const double>(x.data<double>(), static_cast<size_t>(x.size())), bits);
    push(L, std::string_view(packed_bits(q.values, lua_toboolean(L, 3) ? bits : 8)));
    lua_pushnumber(L, q.low);
    lua_pushnumber(L, q.high);
    return 3;
}

// from_few_bits(bytes, bits, is_packed, count, low, high) -> float64 (count)
int from_few_bits(lua_State* L) {
    const auto count = static_cast<size_t>(least_at(L, 4, 0));
    Quantised q;
    q.bits = static_cast<int>(luaL_checkinteger(L, 2));
    q.values = unpacked_bits("receive", view_at(L, 1), lua_toboolean(L, 3) ? q.bits : 8, count);
    q.low = luaL_checknumber(L, 5);
    q.high = luaL_checknumber(L, 6);
    Tensor x = Tensor::empty(DType::f64, Shape{static_cast<int64_t>(count)});
    for (size_t i = 0; i < count; ++i) x.data<double>()[i] = q.value(i);
    push(L, x.to(current_place()));
    return 1;
}

// new_seed() -> 32 secret bytes
int new_seed(lua_State* L) {
    const Secret seed = Secret::random("vertical");
    push(L, seed.view());
    return 1;
}

}  // namespace

int open_vertical(lua_State* L) {
    make_handle_type(L, kListenerHandle, protect<release_handle<ListenerHandle>>);
    make_handle_type(L, kChannelHandle, protect<release_handle<ChannelHandle>>);
    make_handle_type(L, kIntersectionHandle, protect<release_handle<IntersectionHandle>>);
    constexpr luaL_Reg functions[] = {{"listen", protect<listen>},
                                      {"split", protect<split>},
                                      {"accept", protect<accept>},
                                      {"call", protect<call>},
                                      {"send", protect<send>},
                                      {"receive", protect<receive>},
                                      {"close_channel", protect<close_handle<ChannelHandle, kChannelHandle>>},
                                      {"close_listener", protect<close_handle<ListenerHandle, kListenerHandle>>},
                                      {"pack", protect<pack_message>},
                                      {"unpack", protect<unpack_message>},
                                      {"intersection", protect<intersection>},
                                      {"next_message", protect<next_message>},
                                      {"take_message", protect<take_message>},
                                      {"result", protect<result>},
                                      {"drawn", protect<drawn>},
                                      {"masked", protect<masked>},
                                      {"mask_times", protect<mask_times>},
                                      {"times", protect<times>},
                                      {"histogram", protect<histogram>},
                                      {"sum", protect<sum>},
                                      {"difference", protect<difference>},
                                      {"to_fixed", protect<fixed>},
                                      {"from_fixed", protect<real>},
                                      {"few_bits", protect<few_bits>},
                                      {"from_few_bits", protect<from_few_bits>},
                                      {"new_seed", protect<new_seed>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
