// The module behind lunaria/federated/compression.lua.
#include <cstring>

#include "core/base/interrupt.h"
#include "core/federated/compression.h"
#include "core/federated/discrete_noise.h"
#include "core/federated/signds.h"
#include "core/io/secure_random.h"
#include "core/random/random.h"
#include "interpreter/bindings/federated_values.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"

namespace lunaria::federated {

namespace {

int bits_at(lua_State* L, int index) {
    return static_cast<int>(std::clamp<lua_Integer>(luaL_checkinteger(L, index), -1, 1000));
}

// A number of elements that only the program's word stands for, not a tensor.
int64_t count_at(lua_State* L, int index, std::string_view where, std::string_view name) {
    constexpr int64_t kMost = int64_t{1} << 26;
    const lua_Integer count = luaL_checkinteger(L, index);
    if (count < 0 || count > kMost) throw argument_error(where, str(name, " must be at most 2^26, got ", count));
    return count;
}

// quantise(x, bits) -> int32 tensor, low, high, scale
int quantise(lua_State* L) {
    const int bits = bits_at(L, 2);
    const Quantised q = with_floats(L, 1, "quantize", [&](auto values) { return quantised("quantize", values, bits); });
    push_vector<int32_t>(L, q.values);
    lua_pushnumber(L, q.low);
    lua_pushnumber(L, q.high);
    lua_pushnumber(L, q.scale());
    return 4;
}

std::vector<int32_t> small_integers_at(lua_State* L, int index, std::string_view where, int bits) {
    if (bits < 1 || bits > 32) throw argument_error(where, str("bits must be from 1 to 32, got ", bits));
    std::vector<int32_t> values;
    const int64_t bound = int64_t{1} << (bits - 1);
    for (const int64_t value : integers_of(L, index, where, "values")) {
        if (value < -bound || value >= bound)
            throw argument_error(where, str(value, " does not fit into ", bits, " bits"));
        values.push_back(static_cast<int32_t>(value));
    }
    return values;
}

// dequantise(int64 tensor, low, high, bits) -> float64 tensor
int dequantise(lua_State* L) {
    Quantised q;
    q.low = luaL_checknumber(L, 2);
    q.high = luaL_checknumber(L, 3);
    q.bits = bits_at(L, 4);
    q.values = small_integers_at(L, 1, "dequantize", q.bits);
    std::vector<double> values(q.values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = q.value(i);
    push_vector<double>(L, values);
    return 1;
}

// pack(int64 tensor, bits) -> bytes
int pack(lua_State* L) {
    const int bits = bits_at(L, 2);
    push(L, std::string_view(packed_bits(small_integers_at(L, 1, "pack_bits", bits), bits)));
    return 1;
}
// unpack(bytes, bits, count) -> int32 tensor
int unpack(lua_State* L) {
    const lua_Integer count = luaL_checkinteger(L, 3);
    if (count < 0) throw argument_error("unpack_bits", str("count must not be negative, got ", count));
    push_vector<int32_t>(L, unpacked_bits("unpack_bits", bytes_at(L, 1), bits_at(L, 2), static_cast<size_t>(count)));
    return 1;
}

SparsePlan sparse_plan_at(lua_State* L, int index) {
    SparsePlan plan;
    plan.size = integer_field(L, index, "size");
    plan.rate = number_field(L, index, "rate");
    plan.seed = static_cast<uint64_t>(integer_field(L, index, "seed"));
    plan.bits = static_cast<int>(std::clamp<int64_t>(integer_field(L, index, "bits"), -1, 1000));
    plan.block = integer_field(L, index, "block");
    return plan;
}

// places(size, rate, seed) -> int64 tensor
int places(lua_State* L) {
    const int64_t size = count_at(L, 1, "sparse_places", "size");
    const int64_t kept = kept_of("sparse_places", size, luaL_checknumber(L, 2));
    push_vector<int64_t>(L, seeded_places(size, kept, static_cast<uint64_t>(luaL_checkinteger(L, 3))));
    return 1;
}
// sparse(plan, x) -> bytes
int sparse(lua_State* L) {
    const SparsePlan plan = sparse_plan_at(L, 1);
    push(L, std::string_view(with_floats(L, 2, "compress",
                                         [&](auto values) { return sparse_quantised("compress", plan, values); })));
    return 1;
}
int from_sparse(lua_State* L) {
    push_vector<double>(L, from_sparse_quantised(sparse_plan_at(L, 1), bytes_at(L, 2)));
    return 1;
}

// largest(x, count) -> int64 tensor
int largest(lua_State* L) {
    const int64_t kept = luaL_checkinteger(L, 2);
    push_vector<int64_t>(
        L, with_floats(L, 1, "top_k", [&](auto values) { return largest_places("top_k", values, kept); }));
    return 1;
}
// top(x, count, bits) -> bytes
int top(lua_State* L) {
    const int64_t kept = luaL_checkinteger(L, 2);
    const int bits = bits_at(L, 3);
    push(L, std::string_view(
                with_floats(L, 1, "compress", [&](auto values) { return top_k("compress", values, kept, bits); })));
    return 1;
}
// from_top(size, count, bytes) -> float64 tensor
int from_top(lua_State* L) {
    const int64_t size = luaL_checkinteger(L, 1);
    if (size < 1 || size > int64_t{1} << 31)
        throw argument_error("decompress", str("a vector has from 1 to 2^31 elements, got ", size));
    push_vector<double>(L, from_top_k(size, luaL_checkinteger(L, 2), bytes_at(L, 3)));
    return 1;
}

SketchPlan sketch_plan_at(lua_State* L, int index) {
    return {integer_field(L, index, "rows"), integer_field(L, index, "columns"),
            static_cast<uint64_t>(integer_field(L, index, "seed"))};
}
// sketch(plan, x) -> float64 tensor
int sketch(lua_State* L) {
    const SketchPlan plan = sketch_plan_at(L, 1);
    push_vector<double>(L, with_floats(L, 2, "sketch", [&](auto values) { return sketched("sketch", plan, values); }));
    return 1;
}
// estimate(plan, sketch, size) -> float64 tensor
int estimate(lua_State* L) {
    const SketchPlan plan = sketch_plan_at(L, 1);
    const int64_t size = count_at(L, 3, "estimate", "size");
    push_vector<double>(L, with_floats(L, 2, "estimate", [&](auto cells) {
                            return estimates("estimate", plan, std::vector<double>(cells.begin(), cells.end()), size);
                        }));
    return 1;
}

SignDSPlan signds_plan_at(lua_State* L, int index) {
    SignDSPlan plan;
    plan.size = integer_field(L, index, "size");
    plan.k = number_field(L, index, "k");
    plan.epsilon = number_field(L, index, "epsilon");
    plan.threshold_ratio = number_field(L, index, "threshold_ratio");
    plan.most_sent = integer_field(L, index, "most_sent");
    plan.find("SignDS");
    return plan;
}

// Random words: of the system, or, with a seed at `index`, by position.
std::function<uint64_t()> words_at(lua_State* L, int index, std::string_view where) {
    if (lua_isnoneornil(L, index))
        return [where = std::string(where), kept = std::array<uint64_t, 512>{}, at = size_t{512}]() mutable {
            if (at == kept.size()) {
                secure_random(where, kept.data(), sizeof kept);
                at = 0;
            }
            return std::exchange(kept[at++], 0);
        };
    constexpr uint64_t kPurpose = 0x73676E6473;
    return [seed = static_cast<uint64_t>(luaL_checkinteger(L, index)), at = uint64_t{0}]() mutable {
        const std::array<uint32_t, 4> words = philox(seed, at++, kPurpose);
        return static_cast<uint64_t>(words[1]) << 32 | words[0];
    };
}

// signds_plan(plan) -> { top, sent, threshold, probabilities, expected_share }
int signds_plan(lua_State* L) {
    const SignDSPlan plan = signds_plan_at(L, 1);
    lua_createtable(L, 0, 5);
    for (const auto& [name, value] :
         {std::pair("top", plan.top), std::pair("sent", plan.sent), std::pair("threshold", plan.threshold)}) {
        lua_pushinteger(L, value);
        lua_setfield(L, -2, name);
    }
    push_vector<double>(L, plan.probabilities);
    lua_setfield(L, -2, "probabilities");
    lua_pushnumber(L, plan.expected_share);
    lua_setfield(L, -2, "expected_share");
    return 1;
}
// signds_write(plan, x, seed or nil) -> bytes
int signds_write(lua_State* L) {
    const SignDSPlan plan = signds_plan_at(L, 1);
    const auto draw = words_at(L, 3, "SignDS");
    const SignDSUpdate update =
        with_floats(L, 2, "SignDS", [&](auto values) { return signds("SignDS", plan, values, draw); });
    push(L, std::string_view(written_signds(plan, update)));
    return 1;
}
// signds_read(plan, bytes) -> sign, int64 tensor of places
int signds_read(lua_State* L) {
    const SignDSUpdate update = read_signds(signds_plan_at(L, 1), bytes_at(L, 2));
    lua_pushinteger(L, update.sign);
    push_vector<int64_t>(L, update.places);
    return 2;
}

// discrete_gaussian(count, sigma, seed or nil) -> int64 tensor
int discrete_noise(lua_State* L) {
    const int64_t count = count_at(L, 1, "discrete_gaussian", "count");
    const DiscreteGaussian law("discrete_gaussian", luaL_checknumber(L, 2));
    const auto draw = words_at(L, 3, "discrete_gaussian");
    std::vector<int64_t> noise(static_cast<size_t>(count));
    in_ranges(count, 1 << 12, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) noise[static_cast<size_t>(i)] = law.draw(draw);
    });
    push_vector<int64_t>(L, noise);
    return 1;
}

}  // namespace

}  // namespace lunaria::federated

namespace lunaria {

int open_federated_compression(lua_State* L) {
    using namespace federated;
    constexpr luaL_Reg functions[] = {{"quantise", protect<quantise>},
                                      {"dequantise", protect<dequantise>},
                                      {"pack", protect<pack>},
                                      {"unpack", protect<unpack>},
                                      {"places", protect<places>},
                                      {"sparse", protect<sparse>},
                                      {"from_sparse", protect<from_sparse>},
                                      {"largest", protect<largest>},
                                      {"top", protect<top>},
                                      {"from_top", protect<from_top>},
                                      {"sketch", protect<sketch>},
                                      {"estimate", protect<estimate>},
                                      {"signds_plan", protect<signds_plan>},
                                      {"signds_write", protect<signds_write>},
                                      {"signds_read", protect<signds_read>},
                                      {"discrete_gaussian", protect<discrete_noise>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
