// The module behind lunaria/parallel/: gradients of all ranks, and values that all ranks share.
#include <algorithm>

#include "core/base/error.h"
#include "core/io/stream.h"
#include "core/parallel/communicator.h"
#include "core/parallel/gradients.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using parallel::Collective;
using parallel::Communicator;
using parallel::GradientExchange;

// An exchange is registered by its number, for operators of compiled steps, as long as its handle lives.
struct RegisteredExchange {
    std::shared_ptr<GradientExchange> exchange;  // owners: the handle, and operators that run
    int64_t number;

    explicit RegisteredExchange(std::shared_ptr<GradientExchange> e)
        : exchange(std::move(e)), number(parallel::add_exchange(exchange)) {}
    RegisteredExchange(RegisteredExchange&& other) noexcept
        : exchange(std::move(other.exchange)), number(std::exchange(other.number, 0)) {}
    RegisteredExchange(const RegisteredExchange&) = delete;
    RegisteredExchange& operator=(const RegisteredExchange&) = delete;
    ~RegisteredExchange() {
        if (number) parallel::remove_exchange(number);
    }
};
constexpr const char* kExchangeHandle = "lunaria.gradients.exchange";

int world_ranks(lua_State* L) {
    const Communicator* world = parallel::world();
    lua_pushinteger(L, world ? world->ranks() : 1);
    return 1;
}

int world_rank(lua_State* L) {
    const Communicator* world = parallel::world();
    lua_pushinteger(L, world ? world->rank() : 0);
    return 1;
}

double training_option(lua_State* L, int index, const char* name, double otherwise) {
    lua_getfield(L, index, name);
    const double value = luaL_optnumber(L, -1, otherwise);
    lua_pop(L, 1);
    return value;
}

std::string text_option(lua_State* L, int index, const char* name) {
    lua_getfield(L, index, name);
    const std::string value = luaL_optstring(L, -1, "");
    lua_pop(L, 1);
    return value;
}

parallel::ExchangeOptions options_at(lua_State* L, int index) {
    parallel::ExchangeOptions options;
    options.communicator = parallel::world();
    const std::string combination = text_option(L, index, "combination"), packing = text_option(L, index, "packing");
    if (combination == "tree") options.combination = parallel::Combination::tree;
    if (combination == "adasum") options.combination = parallel::Combination::adasum;
    if (packing == "top_k") options.packing = parallel::Packing::top_k;
    if (packing == "fp16" || packing == "bf16") options.packing = parallel::Packing::half;
    if (packing == "bf16") options.half = DType::bf16;
    options.fraction = training_option(L, index, "fraction", 0.01);
    options.shards = static_cast<int>(training_option(L, index, "shards", 1));
    options.factor = training_option(L, index, "factor", 1);
    options.settles_after = static_cast<int>(training_option(L, index, "settles_after", 0));
    options.most_bytes = static_cast<int64_t>(training_option(L, index, "most_bytes", double(int64_t{64} << 20)));
    lua_getfield(L, index, "ends");
    if (lua_istable(L, -1))
        for (const int64_t end : integers_at(L, -1, "exchange", "ends"))
            options.ends.push_back(static_cast<size_t>(end));
    lua_pop(L, 1);
    return options;
}

// exchange(tensors like the gradients, their names, options)
int exchange(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    std::vector<parallel::GradientType> gradients;
    const auto count = static_cast<lua_Integer>(lua_rawlen(L, 1));
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_rawgeti(L, 1, i);
        lua_rawgeti(L, 2, i);
        const Tensor& like = check_tensor(L, -2, "exchange", "tensors");
        gradients.push_back({{like.dtype(), like.shape()}, text_at(L, -1)});
        lua_pop(L, 2);
    }
    push_handle(L, RegisteredExchange(std::make_shared<GradientExchange>(std::move(gradients), options_at(L, 3))),
                kExchangeHandle);
    return 1;
}

const RegisteredExchange& exchange_at(lua_State* L) { return handle_at<RegisteredExchange>(L, 1, kExchangeHandle); }

size_t place_at(lua_State* L, const GradientExchange& exchange) {
    const lua_Integer place = luaL_checkinteger(L, 2);
    if (place < 1 || place > static_cast<lua_Integer>(exchange.size()))
        throw index_error("exchange", "no such gradient");
    return static_cast<size_t>(place - 1);
}

// give(exchange, place, gradient)
int give(lua_State* L) {
    GradientExchange& exchange = *exchange_at(L).exchange;
    exchange.give(place_at(L, exchange), check_tensor(L, 3, "give", "gradient"));
    return 0;
}

// take(exchange, place) -> the combined gradient
int take(lua_State* L) {
    GradientExchange& exchange = *exchange_at(L).exchange;
    push(L, exchange.take(place_at(L, exchange)));
    return 1;
}

int cancel(lua_State* L) {
    exchange_at(L).exchange->cancel();
    return 0;
}

// deaf(exchange, whether it ignores what is given)
int deaf(lua_State* L) {
    exchange_at(L).exchange->set_deaf(lua_toboolean(L, 2) != 0);
    return 0;
}

int number(lua_State* L) {
    lua_pushinteger(L, exchange_at(L).number);
    return 1;
}

// buckets(exchange) -> a list of lists of places, and latency and seconds for each byte where they were measured
int buckets(lua_State* L) {
    const GradientExchange& exchange = *exchange_at(L).exchange;
    lua_newtable(L);
    lua_Integer b = 0;
    for (const auto& bucket : exchange.buckets()) {
        lua_newtable(L);
        for (size_t k = 0; k < bucket.size(); ++k) {
            lua_pushinteger(L, static_cast<lua_Integer>(bucket[k] + 1));
            lua_rawseti(L, -2, static_cast<lua_Integer>(k + 1));
        }
        lua_rawseti(L, -2, ++b);
    }
    if (!exchange.cost()) return 1;
    lua_pushnumber(L, exchange.cost()->latency);
    lua_pushnumber(L, exchange.cost()->per_byte);
    return 3;
}

std::vector<Tensor> tensors_at(lua_State* L, int index, const char* where) {
    luaL_checktype(L, index, LUA_TTABLE);
    std::vector<Tensor> list;
    for (lua_Integer i = 1; i <= static_cast<lua_Integer>(lua_rawlen(L, index)); ++i) {
        lua_rawgeti(L, index, i);
        list.push_back(check_tensor(L, -1, where, "tensors"));
        lua_pop(L, 1);
    }
    return list;
}

// share(tensors): all get the elements that they have on rank 0.
int share(lua_State* L) {
    Communicator* world = parallel::world();
    for (const Tensor& tensor : tensors_at(L, 1, "share")) {
        if (!world) break;
        Tensor data = tensor.to_host().contiguous().copy();
        parallel::Request request;
        request.operation = Collective::broadcast;
        request.dtype = data.dtype();
        request.count = data.size();
        request.in = request.out = data.raw();
        if (const ParameterInfo* info = tensor.parameter()) request.label.parameter = info->name;
        world->run(request);
        Tensor target = tensor;
        if (world->rank() != 0) target.assign("share", data);
    }
    return 0;
}

// difference(tensors) -> the place of the first tensor whose elements are not those of rank 0 on some rank, and that
// rank; nothing where there is none.
int difference(lua_State* L) {
    Communicator* world = parallel::world();
    if (!world) return 0;
    std::vector<int64_t> own;
    for (const Tensor& tensor : tensors_at(L, 1, "difference")) {
        const Tensor data = tensor.to_host().contiguous();
        own.push_back(crc32_of({static_cast<const char*>(data.raw()), data.nbytes()}));
    }
    std::vector<int64_t> all(own.size() * static_cast<size_t>(world->ranks()));
    parallel::Request request;
    request.operation = Collective::all_gather;
    request.dtype = DType::i64;
    request.count = static_cast<int64_t>(own.size());
    request.in = own.data();
    request.out = all.data();
    world->run(request);
    for (size_t i = own.size(); i < all.size(); ++i)
        if (all[i] != all[i % own.size()]) {
            lua_pushinteger(L, static_cast<lua_Integer>(i % own.size() + 1));
            lua_pushinteger(L, static_cast<lua_Integer>(i / own.size()));
            return 2;
        }
    return 0;
}

// rows(tensor, first, count) -> so many rows in memory of their own, zeros beyond the last one; rows(tensor): all of
// it.
int rows(lua_State* L) {
    const Tensor& x = check_tensor(L, 1, "rows", "tensor");
    if (lua_isnoneornil(L, 2)) {
        push(L, x.copy());
        return 1;
    }
    const int64_t first = integer_at(L, 2, "rows", "first"), count = integer_at(L, 3, "rows", "count");
    Shape shape = x.shape();
    const int64_t own = std::clamp<int64_t>(shape[0] - first, 0, count);
    shape[0] = count;
    Tensor result = own < count ? Tensor::zeros(x.dtype(), shape) : Tensor::empty(x.dtype(), shape);
    if (own > 0) {
        shape[0] = own;
        copy_elements(x.to_host().view(shape, x.strides(), first * x.strides()[0]),
                      result.view(shape, result.strides()));
    }
    push(L, std::move(result));
    return 1;
}

// become(parameter, tensor): the parameter has the shape and the elements of the tensor from now on.
int become_tensor(lua_State* L) {
    const Tensor value = check_tensor(L, 2, "become", "tensor");
    check_tensor(L, 1, "become", "parameter");
    reinterpret_cast<Tensor&>(*tensor_place(L, 1)).become(value.copy());
    return 0;
}

}  // namespace

int open_gradients(lua_State* L) {
    make_handle_type(L, kExchangeHandle, protect<release_handle<RegisteredExchange>>);
    constexpr luaL_Reg functions[] = {{"ranks", protect<world_ranks>},
                                      {"rank", protect<world_rank>},
                                      {"exchange", protect<exchange>},
                                      {"give", protect<give>},
                                      {"take", protect<take>},
                                      {"cancel", protect<cancel>},
                                      {"deaf", protect<deaf>},
                                      {"number", protect<number>},
                                      {"buckets", protect<buckets>},
                                      {"share", protect<share>},
                                      {"difference", protect<difference>},
                                      {"rows", protect<rows>},
                                      {"become", protect<become_tensor>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
