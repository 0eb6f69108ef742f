#include "interpreter/workers/dataset_host.h"

#include "core/base/interrupt.h"
#include "core/data/draws.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

using data::Place;
using data::Row;

namespace {

// While it lives, random operators draw from the stream of the row: the same numbers whenever and wherever the row is
// made.
class RowRandom {
  public:
    explicit RowRandom(const Place& place) : before_(default_generator().state()) {
        default_generator().set_state(stream_of(place));
    }
    ~RowRandom() { default_generator().set_state(before_); }
    RowRandom(const RowRandom&) = delete;

  private:
    RandomStream before_;
};

}  // namespace

std::string text_of(const Place& place) {
    std::string names;
    for (const std::string& name : *place.columns) names += (names.empty() ? "'" : ", '") + name + "'";
    return str("in ", place.operation, ": ", place.columns->size() == 1 ? "column " : "columns ", names, ", row ",
               place.row, " of epoch ", place.epoch);
}

RandomStream stream_of(const Place& place) {
    const data::Draws draws(place.seed, place.epoch, data::Purpose::row);
    return {draws.bits(static_cast<uint64_t>(place.row)), 0};
}

void push_row(lua_State* L, Row row) {
    luaL_checkstack(L, static_cast<int>(row.size()) + 4, "too many columns");
    for (Value& v : row) push(L, std::move(v));
}

void DatasetHost::push_function(uint64_t function) {
    luaL_checkstack(L_, 8, "pipelines in pipelines");
    lua_rawgetp(L_, functions_, reinterpret_cast<const void*>(function));
}

// Calls the function on the stack with its arguments; an error names the row.
void DatasetHost::run(int arguments, const Place& place) {
    const RowRandom random(place);
    if (lua_pcall(L_, arguments, LUA_MULTRET, 0) == LUA_OK) return;
    if (!interrupt_requested() && lua_type(L_, -1) == LUA_TSTRING) {
        push(L_, std::string_view("\n  " + text_of(place)));
        lua_concat(L_, 2);
    }
    lua_rawseti(L_, streams_, ++last_stream_);
    throw HostFailure(last_stream_);
}

void take_results(lua_State* L, int first, size_t results, Row& out, const Place& place) {
    size_t count = static_cast<size_t>(lua_gettop(L) - first + 1);
    if (count == 1 && results > 1 && lua_type(L, first) == LUA_TTABLE) {
        const int list = first;
        count = static_cast<size_t>(luaL_len(L, list));
        if (count == results) {
            luaL_checkstack(L, static_cast<int>(count) + 4, "too many columns");
            for (size_t i = 1; i <= count; ++i) lua_geti(L, list, static_cast<lua_Integer>(i));
            first = list + 1;
        }
    }
    if (count != results)
        throw argument_error(place.operation,
                             str("the function returned ", count == 0 ? "nothing (nil)" : str(count, " values"),
                                 " for ", results, results == 1 ? " column" : " columns", " in row ", place.row));
    for (size_t i = 0; i < results; ++i) {
        const int at = first + static_cast<int>(i);
        // Texts for messages are made last, since they take longer than the rest.
        if (const Tensor* tensor = tensor_at(L, at)) {
            out.push_back(data_value_of(*tensor));
            continue;
        }
        const std::string& name = i < place.columns->size() ? (*place.columns)[i] : place.columns->back();
        switch (lua_type(L, at)) {
            case LUA_TNIL:
            case LUA_TFUNCTION:
            case LUA_TTHREAD:
                throw argument_error(place.operation,
                                     str("the function must return a tensor, number, text or table for column '", name,
                                         "', got ", describe(L, at), " in row ", place.row));
            default:
                out.push_back(data_value_at(L, at, place.operation, str("column '", name, "'")));
        }
    }
}

void DatasetHost::call(uint64_t function, std::span<const Value> in, size_t results, Row& out, const Place& place) {
    const int top = lua_gettop(L_);
    push_function(function);
    luaL_checkstack(L_, static_cast<int>(in.size()) + 4, "too many columns");
    for (const Value& v : in) push(L_, v);
    run(static_cast<int>(in.size()), place);
    take_results(L_, top + 1, results, out, place);
    lua_settop(L_, top);
}

bool DatasetHost::test(uint64_t function, std::span<const Value> in, const Place& place) {
    const int top = lua_gettop(L_);
    push_function(function);
    luaL_checkstack(L_, static_cast<int>(in.size()) + 4, "too many columns");
    for (const Value& v : in) push(L_, v);
    run(static_cast<int>(in.size()), place);
    lua_settop(L_, top + 1);
    bool yes = false;
    if (const Tensor* t = tensor_at(L_, top + 1); t && t->size() == 1)
        yes = t->at(0) != 0;
    else if (lua_isboolean(L_, top + 1))
        yes = lua_toboolean(L_, top + 1);
    else
        throw argument_error(place.operation, str("the function must return true or false, got ", describe(L_, top + 1),
                                                  " in row ", place.row));
    lua_settop(L_, top);
    return yes;
}

int64_t DatasetHost::start(uint64_t function, const Place& place) {
    const int top = lua_gettop(L_);
    {
        const std::lock_guard lock(mutex_);
        for (const int64_t stream : stopped_) {
            lua_pushnil(L_);
            lua_rawseti(L_, streams_, stream);
        }
        stopped_.clear();
    }
    push_function(function);
    lua_pushinteger(L_, static_cast<lua_Integer>(place.epoch));
    run(1, place);
    lua_settop(L_, top + 3);  // as a generic for: function, state, control
    lua_createtable(L_, 3, 0);
    lua_insert(L_, top + 1);
    for (int i = 3; i >= 1; --i) lua_rawseti(L_, top + 1, i);
    lua_rawseti(L_, streams_, ++last_stream_);
    lua_settop(L_, top);
    return last_stream_;
}

bool DatasetHost::step(int64_t stream, size_t results, Row& out, const Place& place) {
    const int top = lua_gettop(L_);
    luaL_checkstack(L_, 8, "pipelines in pipelines");
    lua_rawgeti(L_, streams_, stream);
    for (int i = 1; i <= 3; ++i) lua_rawgeti(L_, top + 1, i);
    run(2, place);
    const bool more = lua_gettop(L_) > top + 1 && !lua_isnil(L_, top + 2);
    if (more) {
        lua_pushvalue(L_, top + 2);
        lua_rawseti(L_, top + 1, 3);
        take_results(L_, top + 2, results, out, place);
    }
    lua_settop(L_, top);
    return more;
}

void DatasetHost::stop(int64_t stream) noexcept {
    const std::lock_guard lock(mutex_);
    stopped_.push_back(stream);
}

void DatasetHost::prepare(uint64_t function, std::string_view where) {
    if (workers_.contains(function)) return;
    push_function(function);
    workers_[function] = Workers::of(L_, lua_gettop(L_), where);
    lua_pop(L_, 1);
}

std::pair<size_t, size_t> DatasetHost::recorded() const {
    std::pair<size_t, size_t> count{};
    for (const auto& [function, workers] : workers_) {
        count.first += workers->programs(false) > 0;
        count.second += workers->programs(true) > 0;
    }
    return count;
}

bool DatasetHost::wants_example(uint64_t function, const void* owner) {
    return std::this_thread::get_id() == thread_ && workers_.at(function)->wants_example(owner);
}

void DatasetHost::show_example(uint64_t function, const void* owner, std::span<const Value> in) {
    push_function(function);
    workers_.at(function)->record(L_, lua_gettop(L_), in, owner);
    lua_pop(L_, 1);
}

void DatasetHost::call_together(uint64_t function, std::span<Row> in, size_t results, std::span<Row> out,
                                const Place& place, std::span<const int64_t> rows) {
    workers_.at(function)->call_together(in, results, out, place, rows);
}

void DatasetHost::call_anywhere(uint64_t function, std::span<const Value> in, size_t results, Row& out,
                                const Place& place) {
    workers_.at(function)->call(in, results, out, place);
}

}  // namespace lunaria
