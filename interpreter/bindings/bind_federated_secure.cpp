// The module behind lunaria/federated/secure/: fixed-point codes, clients and servers of secure sums, signatures.
#include <memory>

#include "core/federated/secure_server.h"
#include "core/federated/stable_masks.h"
#include "core/io/secure_random.h"
#include "interpreter/bindings/federated_values.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kWhere = "secure aggregation";
using ClientHandle = std::unique_ptr<SecureClient>;
using ServerHandle = std::unique_ptr<SecureServer>;
using StableClientHandle = std::unique_ptr<StableClient>;
using StableServerHandle = std::unique_ptr<StableServer>;
constexpr const char* kClient = "lunaria.federated.client";
constexpr const char* kServer = "lunaria.federated.server";
constexpr const char* kStableClient = "lunaria.federated.stable_client";
constexpr const char* kStableServer = "lunaria.federated.stable_server";

int push_bytes(lua_State* L, const std::string& bytes) {
    push(L, std::string_view(bytes));
    return 1;
}

Secret secret_at(lua_State* L, int index, std::string_view argument) {
    const std::string_view bytes = bytes_at(L, index);
    if (bytes.size() != 32)
        throw argument_error(kWhere, str(argument, " must be a key of 32 bytes, got ", bytes.size()));
    return Secret::of(bytes);
}

// The table { bits, fraction_bits, clip, weight, clients, refuses } at `index`.
FixedPoint code_at(lua_State* L, int index) {
    FixedPoint code;
    code.ring.bits = static_cast<int>(std::clamp<int64_t>(integer_field(L, index, "bits"), 0, 1000));
    code.fraction_bits = static_cast<int>(std::clamp<int64_t>(integer_field(L, index, "fraction_bits"), -1, 1000));
    code.clip = number_field(L, index, "clip");
    code.most_weight = integer_field(L, index, "weight");
    code.most_clients = integer_field(L, index, "clients");
    code.refuses = boolean_field(L, index, "refuses");
    return code;
}

// smallest_bits(code) -> bits
int smallest_bits(lua_State* L) {
    lua_pushinteger(L, FixedPoint::smallest("FixedPoint", code_at(L, 1)).ring.bits);
    return 1;
}

int check_code(lua_State* L) {
    code_at(L, 1).check("FixedPoint");
    return 0;
}

void push_elements(lua_State* L, Ring ring, std::span<const uint64_t> elements) {
    std::vector<int64_t> numbers(elements.size());
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = ring.number(elements[i]);
    push_vector<int64_t>(L, numbers);
}

std::vector<uint64_t> elements_at(lua_State* L, int index, Ring ring, std::string_view where) {
    std::vector<uint64_t> elements;
    for (const int64_t number : integers_of(L, index, where, "elements")) elements.push_back(ring.element(number));
    return elements;
}

// encode(code, x, weight) -> elements, how many were clipped
int encode(lua_State* L) {
    const FixedPoint code = code_at(L, 1);
    const int64_t weight = luaL_checkinteger(L, 3);
    std::vector<uint64_t> elements;
    const int64_t clipped = with_floats(L, 2, "encode", [&](auto values) {
        elements.resize(values.size() + 1);
        return code.encode("encode", values, weight, elements);
    });
    push_elements(L, code.ring, elements);
    lua_pushinteger(L, clipped);
    return 2;
}

// mean(code, sum) -> the mean, the sum of the weights
int mean(lua_State* L) {
    const FixedPoint code = code_at(L, 1);
    const std::vector<uint64_t> sum = elements_at(L, 2, code.ring, "decode");
    push_vector<double>(L, code.mean("decode", sum));
    lua_pushinteger(L, code.ring.number(sum.back()));
    return 2;
}

SecureSettings settings_at(lua_State* L, int index) {
    SecureSettings settings;
    lua_getfield(L, index, "job");
    settings.job = bytes_at(L, -1);
    lua_pop(L, 1);
    const auto count = [&](const char* name) {
        const int64_t value = integer_field(L, index, name);
        if (value < 0) throw argument_error(kWhere, str(name, " must not be negative, got ", value));
        return static_cast<size_t>(value);
    };
    settings.iteration = integer_field(L, index, "iteration");
    settings.ring.bits = static_cast<int>(std::clamp<int64_t>(integer_field(L, index, "bits"), 0, 1000));
    settings.size = count("size");
    settings.threshold = count("threshold");
    settings.neighbours = count("neighbours");
    settings.is_signed = boolean_field(L, index, "is_signed");
    return settings;
}

// The table of public keys by client at `index`, or none.
SigningKeys keys_at(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return {};
    luaL_checktype(L, index, LUA_TTABLE);
    auto keys = std::make_shared<std::map<std::string, Bytes32, std::less<>>>();  // of the copies of the function
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            throw argument_error(kWhere, "signing_keys must be a table of keys by the clients' ids");
        const std::string_view bytes = bytes_at(L, -1);
        const auto key = array_of<32>(bytes);
        if (!key)
            throw argument_error(
                kWhere, str("the signing key of '", bytes_at(L, -2), "' must have 32 bytes, got ", bytes.size()));
        keys->emplace(bytes_at(L, -2), *key);
    }
    return [keys](std::string_view client, std::string_view) -> std::optional<Bytes32> {
        const auto found = keys->find(client);
        if (found == keys->end()) return std::nullopt;
        return found->second;
    };
}

std::optional<Identity> identity_at(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return std::nullopt;
    return Identity{secret_at(L, index, "identity"), {}};
}

// Of the system, or the key stream of the text at `index`.
Random random_at(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return system_random(kWhere);
    const Primitives& table = primitives(kWhere);
    const std::shared_ptr<Keystream> stream =
        table.keystream(Secret(table.sha256(bytes_at(L, index))));  // of the copies of the function
    return [stream](std::span<uint8_t> to) { stream->next(to); };
}

// client(settings, id, identity or nil, signing keys or nil, secret or nil)
template <class Client>
std::unique_ptr<Client> client_of(lua_State* L) {
    return std::make_unique<Client>(settings_at(L, 1), std::string(bytes_at(L, 2)), identity_at(L, 3), keys_at(L, 4),
                                    random_at(L, 5));
}
int client(lua_State* L) {
    push_handle<ClientHandle>(L, client_of<SecureClient>(L), kClient);
    return 1;
}
int stable_client(lua_State* L) {
    push_handle<StableClientHandle>(L, client_of<StableClient>(L), kStableClient);
    return 1;
}

SecureClient& client_at(lua_State* L) { return *handle_at<ClientHandle>(L, 1, kClient); }

int client_keys(lua_State* L) { return push_bytes(L, client_at(L).keys()); }
int client_shares(lua_State* L) { return push_bytes(L, client_at(L).shares(bytes_at(L, 2))); }
// client_update(client, list of shares, elements, bits)
int client_update(lua_State* L) {
    const Ring ring{static_cast<int>(luaL_checkinteger(L, 4))};
    return push_bytes(L, client_at(L).update(bytes_at(L, 2), elements_at(L, 3, ring, "update")));
}
int client_list_signature(lua_State* L) { return push_bytes(L, client_at(L).list_signature(bytes_at(L, 2))); }
int client_reveal(lua_State* L) { return push_bytes(L, client_at(L).reveal(bytes_at(L, 2))); }

// server(settings, signing keys or nil)
int server(lua_State* L) {
    push_handle<ServerHandle>(L, std::make_unique<SecureServer>(settings_at(L, 1), keys_at(L, 2)), kServer);
    return 1;
}
SecureServer& server_at(lua_State* L) { return *handle_at<ServerHandle>(L, 1, kServer); }

// (server, client, message) -> whether it is new
template <bool (SecureServer::*accept)(const std::string&, std::string_view)>
int accepted(lua_State* L) {
    lua_pushboolean(L, (server_at(L).*accept)(std::string(bytes_at(L, 2)), bytes_at(L, 3)));
    return 1;
}
int close(lua_State* L) {
    server_at(L).close();
    return 0;
}
int key_list(lua_State* L) { return push_bytes(L, server_at(L).key_list(bytes_at(L, 2))); }
int share_list(lua_State* L) { return push_bytes(L, server_at(L).share_list(bytes_at(L, 2))); }
int client_list(lua_State* L) { return push_bytes(L, server_at(L).client_list()); }
int list_signatures(lua_State* L) { return push_bytes(L, server_at(L).list_signatures()); }
int phase(lua_State* L) {
    push(L, name_of(server_at(L).phase()));
    return 1;
}
int can_finish(lua_State* L) {
    lua_pushboolean(L, server_at(L).can_finish());
    return 1;
}

void push_names(lua_State* L, const std::vector<std::string>& names) {
    lua_createtable(L, static_cast<int>(names.size()), 0);
    for (size_t i = 0; i < names.size(); ++i) {
        push(L, std::string_view(names[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
}
int arrived(lua_State* L) {
    push_names(L, server_at(L).arrived());
    return 1;
}
// finish(server) -> elements, clients, wrong ones
int finish(lua_State* L) {
    SecureServer& s = server_at(L);
    const SecureSum sum = s.finish();
    push_elements(L, s.settings().ring, sum.elements);
    push_names(L, sum.clients);
    push_names(L, sum.wrong);
    return 3;
}

StableClient& stable_client_at(lua_State* L) { return *handle_at<StableClientHandle>(L, 1, kStableClient); }
StableServer& stable_server_at(lua_State* L) { return *handle_at<StableServerHandle>(L, 1, kStableServer); }

int stable_keys(lua_State* L) { return push_bytes(L, stable_client_at(L).keys()); }
int stable_take_keys(lua_State* L) {
    stable_client_at(L).take_keys(bytes_at(L, 2));
    return 0;
}
// stable_update(client, iteration, elements, bits)
int stable_update(lua_State* L) {
    const Ring ring{static_cast<int>(luaL_checkinteger(L, 4))};
    return push_bytes(L, stable_client_at(L).update(luaL_checkinteger(L, 2), elements_at(L, 3, ring, "update")));
}
int stable_server(lua_State* L) {
    push_handle<StableServerHandle>(L, std::make_unique<StableServer>(settings_at(L, 1), keys_at(L, 2)), kStableServer);
    return 1;
}
template <bool (StableServer::*accept)(const std::string&, std::string_view)>
int stable_accepted(lua_State* L) {
    lua_pushboolean(L, (stable_server_at(L).*accept)(std::string(bytes_at(L, 2)), bytes_at(L, 3)));
    return 1;
}
int stable_close(lua_State* L) {
    stable_server_at(L).close_keys();
    return 0;
}
int stable_key_list(lua_State* L) { return push_bytes(L, stable_server_at(L).key_list()); }
int stable_start(lua_State* L) {
    stable_server_at(L).start(luaL_checkinteger(L, 2));
    return 0;
}
int stable_missing(lua_State* L) {
    push_names(L, stable_server_at(L).missing());
    return 1;
}
// stable_finish(server, bits)
int stable_finish(lua_State* L) {
    const Ring ring{static_cast<int>(luaL_checkinteger(L, 2))};
    push_elements(L, ring, stable_server_at(L).finish());
    return 1;
}

// random_key() -> 32 bytes
int random_key(lua_State* L) {
    push(L, Secret::random("Identity").view());
    return 1;
}
int signing_key(lua_State* L) {
    push(L, view_of(primitives("Identity").signing_key(secret_at(L, 1, "seed"))));
    return 1;
}
// sign(seed, message) -> 64 bytes
int sign(lua_State* L) {
    push(L, view_of(primitives("sign").sign(secret_at(L, 1, "seed"), bytes_at(L, 2))));
    return 1;
}
// verify(key, message, signature) -> boolean
int verify(lua_State* L) {
    const auto key = array_of<32>(bytes_at(L, 1));
    lua_pushboolean(L, is_signature(primitives("verify"), key, bytes_at(L, 2), bytes_at(L, 3)));
    return 1;
}

}  // namespace

}  // namespace lunaria::federated

namespace lunaria {

int open_federated_secure(lua_State* L) {
    using namespace federated;
    make_handle_type(L, kClient, protect<release_handle<ClientHandle>>);
    make_handle_type(L, kServer, protect<release_handle<ServerHandle>>);
    make_handle_type(L, kStableClient, protect<release_handle<StableClientHandle>>);
    make_handle_type(L, kStableServer, protect<release_handle<StableServerHandle>>);
    constexpr luaL_Reg functions[] = {
        {"smallest_bits", protect<smallest_bits>},
        {"check_code", protect<check_code>},
        {"encode", protect<encode>},
        {"mean", protect<mean>},
        {"client", protect<client>},
        {"client_keys", protect<client_keys>},
        {"client_shares", protect<client_shares>},
        {"client_update", protect<client_update>},
        {"client_list_signature", protect<client_list_signature>},
        {"client_reveal", protect<client_reveal>},
        {"server", protect<server>},
        {"accept_keys", protect<accepted<&SecureServer::accept_keys>>},
        {"accept_shares", protect<accepted<&SecureServer::accept_shares>>},
        {"accept_update", protect<accepted<&SecureServer::accept_update>>},
        {"accept_list_signature", protect<accepted<&SecureServer::accept_list_signature>>},
        {"accept_revealed", protect<accepted<&SecureServer::accept_revealed>>},
        {"close", protect<federated::close>},
        {"key_list", protect<key_list>},
        {"share_list", protect<share_list>},
        {"client_list", protect<client_list>},
        {"list_signatures", protect<list_signatures>},
        {"phase", protect<phase>},
        {"can_finish", protect<can_finish>},
        {"arrived", protect<arrived>},
        {"finish", protect<finish>},
        {"stable_client", protect<stable_client>},
        {"stable_keys", protect<stable_keys>},
        {"stable_take_keys", protect<stable_take_keys>},
        {"stable_update", protect<stable_update>},
        {"stable_server", protect<stable_server>},
        {"stable_accept_keys", protect<stable_accepted<&StableServer::accept_keys>>},
        {"stable_accept_update", protect<stable_accepted<&StableServer::accept_update>>},
        {"stable_close", protect<stable_close>},
        {"stable_key_list", protect<stable_key_list>},
        {"stable_start", protect<stable_start>},
        {"stable_missing", protect<stable_missing>},
        {"stable_finish", protect<stable_finish>},
        {"random_key", protect<random_key>},
        {"signing_key", protect<signing_key>},
        {"sign", protect<sign>},
        {"verify", protect<verify>},
        {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
