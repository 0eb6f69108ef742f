// The module "lunaria.data" behind lunaria/dataset/. Nodes, records and samplers of core/data are handles here; the Lua
// functions of a node and of those below it are in a table that its handle keeps.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/data/ahead.h"
#include "core/data/batch.h"
#include "core/data/cache.h"
#include "core/data/files/tfrecord.h"
#include "core/data/functions.h"
#include "core/data/gate.h"
#include "core/data/operations.h"
#include "core/data/stage_times.h"
#include "core/data/tolerant.h"
#include "core/data/transforms/step.h"
#include "core/random/random.h"
#include "core/tensor/device.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"
#include "interpreter/workers/dataset_host.h"

namespace lunaria {

namespace {

using namespace data;

constexpr const char* kNode = "lunaria.data.node";
constexpr const char* kCursor = "lunaria.data.cursor";

NodePtr& node_at(lua_State* L, int index) { return handle_at<NodePtr>(L, index, kNode); }

// Adds the functions of the node handle at `index` to the table on top of the stack.
void add_dataset_functions(lua_State* L, int index) {
    if (lua_getiuservalue(L, index, 1) == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -5);
        }
    }
    lua_pop(L, 1);
}

// Pushes a handle of the node, which keeps the functions of the nodes at `children`, and the one at `function` if not
// 0.
int push_node(lua_State* L, NodePtr node, std::initializer_list<int> children, int function = 0) {
    lua_newtable(L);
    for (int child : children) add_dataset_functions(L, child);
    if (function) {
        lua_pushvalue(L, function);
        lua_rawsetp(L, -2, lua_topointer(L, function));
    }
    push_handle(L, std::move(node), kNode, 1);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

uint64_t function_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TFUNCTION);
    return reinterpret_cast<uint64_t>(lua_topointer(L, index));
}

// save_tfrecord(node, path): writes all rows of an epoch and returns their number.
int save_tfrecord(lua_State* L) {
    const NodePtr node = node_at(L, 1);
    const std::string path = path_at(L, 2, "save");
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 1);
    lua_newtable(L);
    DatasetHost host;
    Epoch epoch;
    epoch.host = &host;
    const int64_t count = host.run_in(L, [&] {
        TfrecordWriter writer(path);
        node->prepare(host);
        const auto cursor = node->open(epoch);
        int64_t rows = 0;
        for (Row row; cursor->next(row); ++rows) {
            if (rows % 1024 == 0) poll_interrupt();
            writer.write(node->columns(), row);
        }
        writer.commit();
        return rows;
    });
    lua_pushinteger(L, count);
    return 1;
}

// rows(handle), of records or of a node: nothing when that is not known, math.huge for ever.
int rows(lua_State* L) {
    const auto* records = static_cast<RecordsPtr*>(luaL_testudata(L, 1, kRecordsHandle));
    const int64_t n = records ? (*records)->rows() : node_at(L, 1)->rows();
    if (n == kUnknownRows) return 0;
    if (n == kEndless)
        lua_pushnumber(L, HUGE_VAL);
    else
        lua_pushinteger(L, n);
    return 1;
}

int columns(lua_State* L) {
    const auto* records = static_cast<RecordsPtr*>(luaL_testudata(L, 1, kRecordsHandle));
    const Names& names = records ? (*records)->columns() : node_at(L, 1)->columns();
    lua_createtable(L, static_cast<int>(names.size()), 0);
    for (size_t i = 0; i < names.size(); ++i) {
        push(L, std::string_view(names[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    return 1;
}

int batch_size(lua_State* L) {
    lua_pushinteger(L, node_at(L, 1)->batch_size());
    return 1;
}

int make_source(lua_State* L) {
    return push_node(
        L, source(handle_at<RecordsPtr>(L, 1, kRecordsHandle), handle_at<SamplerPtr>(L, 2, kSamplerHandle)), {});
}

int make_shuffle(lua_State* L) { return push_node(L, shuffle(node_at(L, 1), least_at(L, 2, 1), seed_at(L, 3)), {1}); }

// repeat(node, count): without a count for ever.
int make_repeat(lua_State* L) {
    return push_node(L, repeat(node_at(L, 1), lua_isnoneornil(L, 2) ? kEndless : least_at(L, 2, 1)), {1});
}

int make_skip(lua_State* L) { return push_node(L, skip(node_at(L, 1), least_at(L, 2, 0)), {1}); }

int make_take(lua_State* L) { return push_node(L, take(node_at(L, 1), least_at(L, 2, 0)), {1}); }

int make_select(lua_State* L) {
    const NodePtr& child = node_at(L, 1);
    std::vector<size_t> positions = positions_at(L, 2, child->columns().size());
    Names names = names_at(L, 3);
    if (names.size() != positions.size()) throw argument_error("dataset", "as many names as positions are expected");
    return push_node(L, data::select(child, std::move(positions), std::move(names)), {1});
}

// zip(node, ...), concat(node, ...)
template <NodePtr (*Make)(std::vector<NodePtr>)>
int make_joined(lua_State* L) {
    const int count = lua_gettop(L);
    std::vector<NodePtr> children;
    children.push_back(node_at(L, 1));
    for (int i = 2; i <= count; ++i) children.push_back(node_at(L, i));
    push_node(L, Make(std::move(children)), {});
    lua_getiuservalue(L, -1, 1);
    for (int i = 1; i <= count; ++i) add_dataset_functions(L, i);
    lua_pop(L, 1);
    return 1;
}

// part(node, begin, count, shuffled, seed)
int make_part(lua_State* L) {
    return push_node(L, part(node_at(L, 1), least_at(L, 2, 0), least_at(L, 3, 0), lua_toboolean(L, 4), seed_at(L, 5)),
                     {1});
}

// map(node, where, function, positions, names, seed, numbered, nil, tolerant)
int make_map(lua_State* L) {
    const NodePtr& child = node_at(L, 1);
    Names names = names_at(L, 5);
    if (names.empty()) throw argument_error("dataset", "there are no columns");
    return push_node(L,
                     map(child, text_at(L, 2), function_at(L, 3), positions_at(L, 4, child->columns().size()),
                         std::move(names), seed_at(L, 6), lua_toboolean(L, 7), lua_toboolean(L, 9)),
                     {1}, 3);
}

std::optional<int> workers_at(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return std::nullopt;
    return static_cast<int>(std::min<int64_t>(least_at(L, index, 0), 1024));
}

// map_anywhere(node, where, function, positions, names, seed, numbered, workers, tolerant). A function in C, as
// compiled code makes them, cannot be copied: it runs as in map.
int make_map_anywhere(lua_State* L) {
    if (lua_iscfunction(L, 3)) return make_map(L);
    const NodePtr& child = node_at(L, 1);
    return push_node(
        L,
        map_anywhere(child, text_at(L, 2), function_at(L, 3), positions_at(L, 4, child->columns().size()),
                     names_at(L, 5), seed_at(L, 6), lua_toboolean(L, 7), workers_at(L, 8), lua_toboolean(L, 9)),
        {1}, 3);
}

// filter(node, function, positions, seed)
int make_filter(lua_State* L) {
    const NodePtr& child = node_at(L, 1);
    return push_node(L, filter(child, function_at(L, 2), positions_at(L, 3, child->columns().size()), seed_at(L, 4)),
                     {1}, 2);
}

// stream(where, function, names, rows, seed): without rows their number is unknown.
int make_stream(lua_State* L) {
    Names names = names_at(L, 3);
    if (names.empty()) throw argument_error("dataset", "there are no columns");
    const int64_t count = lua_isnil(L, 4) ? kUnknownRows : least_at(L, 4, 0);
    return push_node(L, stream(text_at(L, 1), function_at(L, 2), std::move(names), count, seed_at(L, 5)), {}, 2);
}

std::vector<TransformPtr> transforms_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    std::vector<TransformPtr> list;
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        list.push_back(transform_at(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return list;
}

// transforms(node, transforms, positions, names, seed, workers, tolerant)
int make_transforms(lua_State* L) {
    const NodePtr& child = node_at(L, 1);
    return push_node(
        L,
        data::transform(child, transforms::joined(transforms_at(L, 2)), positions_at(L, 3, child->columns().size()),
                        names_at(L, 4), seed_at(L, 5), workers_at(L, 6), lua_toboolean(L, 7)),
        {1});
}

// results(transforms, inputs): the number of values that they make from so many.
int count_results(lua_State* L) {
    size_t values = static_cast<size_t>(least_at(L, 2, 1));
    for (const TransformPtr& t : transforms_at(L, 1)) values = t->results(values);
    lua_pushinteger(L, static_cast<lua_Integer>(values));
    return 1;
}

// Rows are made in host memory, whatever device new tensors are on; a row is moved to that device when it is handed
// out.
void place_row(Row& row) {
    if (!current_place()) return;
    for (Value& v : row)
        if (v.is_tensor()) v = Value(v.tensor().to(current_place()));
}

// transform(handle, value, ...): its results, with random numbers drawn as in operators.
int apply_transform(lua_State* L) {
    const TransformPtr& transform = transform_at(L, 1);
    Row row;
    for (int i = 2; i <= lua_gettop(L); ++i)
        row.push_back(data_value_at(L, i, transform->name(), str("argument ", i - 1)));
    transform->results(row.size());
    const RandomStream stream = default_generator().next_stream();
    RowDraws draws(stream.seed, stream.counter, 0, 0);
    transform->apply(row, draws);
    place_row(row);
    const int count = static_cast<int>(row.size());
    push_row(L, std::move(row));
    return count;
}

// A list with false for columns that are not padded, and { shape, value } for others.
Paddings pads_at(lua_State* L, int index) {
    Paddings pads;
    if (lua_isnoneornil(L, index)) return pads;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        pads.emplace_back();
        if (lua_istable(L, -1)) {
            Padding padding;
            lua_geti(L, -1, 1);
            padding.shape = integers_at(L, -1, "padded_batch", "shape");
            lua_geti(L, -2, 2);
            padding.value = Value(static_cast<double>(luaL_checknumber(L, -1)));
            lua_pop(L, 2);
            pads.back() = std::move(padding);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return pads;
}

// bucket(node, length, by_value, boundaries, sizes, drop_remainder, to_boundary, pads)
int make_bucket(lua_State* L) {
    BucketOptions options;
    const NodePtr& child = node_at(L, 1);
    options.length = positions_at(L, 2, child->columns().size()).front();
    options.by_value = lua_toboolean(L, 3);
    options.boundaries = integers_at(L, 4, "bucket_batch_by_length", "bucket_boundaries");
    options.sizes = integers_at(L, 5, "bucket_batch_by_length", "bucket_batch_sizes");
    options.drop_remainder = lua_toboolean(L, 6);
    options.to_boundary = lua_toboolean(L, 7);
    options.pads = pads_at(L, 8);
    return push_node(L, bucket(child, std::move(options)), {1});
}

// good(node, where, replace): without the bad rows of a tolerant operation.
int make_good(lua_State* L) {
    return push_node(L, without_bad_rows(node_at(L, 1), text_at(L, 2), lua_toboolean(L, 3)), {1});
}

// gate(node, name, count, function): function may be nil.
int make_gate(lua_State* L) {
    const bool has = lua_isfunction(L, 4);
    return push_node(L, gate(node_at(L, 1), text_at(L, 2), least_at(L, 3, 1), has ? function_at(L, 4) : 0), {1},
                     has ? 4 : 0);
}

// consent(node, name, count): nothing where there is no such gate, else its function or true.
int give_consent(lua_State* L) {
    uint64_t function = 0;
    const Samples count = lua_isnoneornil(L, 3) ? Samples() : Samples(least_at(L, 3, 1));
    if (!consent(*node_at(L, 1), text_at(L, 2), count, function)) return 0;
    lua_getiuservalue(L, 1, 1);
    if (!function || lua_rawgetp(L, -1, reinterpret_cast<const void*>(function)) != LUA_TFUNCTION)
        lua_pushboolean(L, 1);
    return 1;
}

constexpr const char* kCache = "lunaria.data.cache";

// cache(most_bytes, spilling)
int make_cache_handle(lua_State* L) {
    push_handle(L, make_cache(least_at(L, 1, 0), lua_toboolean(L, 2)), kCache);
    return 1;
}

// cached(node, cache)
int make_cached(lua_State* L) { return push_node(L, cached(node_at(L, 1), handle_at<CachePtr>(L, 2, kCache)), {1}); }

// cache_state(cache): rows, bytes and hits.
int cache_state(lua_State* L) {
    const CachePtr& cache = handle_at<CachePtr>(L, 1, kCache);
    lua_pushinteger(L, cache->rows());
    lua_pushinteger(L, cache->bytes());
    lua_pushinteger(L, cache->hits());
    return 3;
}

void push_tree(lua_State* L, const Node& node, StageTimes* times) {
    luaL_checkstack(L, 8, "a deep pipeline");
    lua_newtable(L);
    push(L, std::string_view(node.title()));
    lua_setfield(L, -2, "title");
    lua_newtable(L);
    for (size_t i = 0; i < node.columns().size(); ++i) {
        push(L, std::string_view(node.columns()[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, "columns");
    if (const int64_t rows = node.rows(); rows != kUnknownRows) {
        if (rows == kEndless)
            lua_pushnumber(L, HUGE_VAL);
        else
            lua_pushinteger(L, rows);
        lua_setfield(L, -2, "rows");
    }
    if (times) {
        const StageTime& time = times->of(node);
        for (const auto& [name, value] :
             {std::pair{"drawing", &time.drawing}, {"making", &time.making}, {"made", &time.rows}}) {
            lua_pushinteger(L, value->load());
            lua_setfield(L, -2, name);
        }
    }
    for (size_t i = 0; i < node.children().size(); ++i) {
        push_tree(L, *node.children()[i], times);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

// tree(node): title, columns, rows and, as a list, the trees below it.
int tree(lua_State* L) {
    push_tree(L, *node_at(L, 1), nullptr);
    return 1;
}

// batch(node, size, drop_remainder, workers, joined, pads)
int make_batch(lua_State* L) {
    BatchOptions options{least_at(L, 2, 1), static_cast<bool>(lua_toboolean(L, 3)), workers_at(L, 4)};
    options.pads = pads_at(L, 6);
    return push_node(L, lua_toboolean(L, 5) ? batch(node_at(L, 1), options) : gather(node_at(L, 1), options), {1});
}

// A cursor in Lua. Its user values: the functions and the streams of DatasetHost.
struct CursorHandle {
    NodePtr node;
    std::unique_ptr<DatasetHost> host = std::make_unique<DatasetHost>();
    std::unique_ptr<StageTimes> times{};
    std::unique_ptr<Cursor> cursor;  // destroyed before the members that it refers to
    Epoch epoch{};
    int64_t given = 0;
    bool interrupted = false;  // the cursor is gone and will be opened again at its last position
    int64_t unpaced_bytes = 0;
};

// The result of f(cursor). The handle is at 1 on the stack. After an interrupt, threads may have left rows unmade.
template <class F>
auto with_cursor(lua_State* L, CursorHandle& handle, F f) {
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 1);
    lua_getiuservalue(L, 1, 2);
    return handle.host->run_in(L, [&] {
        try {
            if (!handle.cursor) {
                handle.node->prepare(*handle.host);
                handle.cursor = ahead(handle.node->open(handle.epoch), *handle.node, handle.epoch);
                handle.cursor->skip(handle.given);
                handle.interrupted = false;
            }
            return f(*handle.cursor);
        } catch (const std::exception&) {
            if (interrupt_requested()) {
                handle.cursor.reset();
                handle.interrupted = true;
            }
            throw;
        }
    });
}

// open(node, epoch, workers, prefetch, timed, bounded)
int open_cursor(lua_State* L) {
    CursorHandle handle;
    handle.node = node_at(L, 1);
    Epoch& epoch = handle.epoch;
    epoch.number = epoch.order = seed_at(L, 2);
    epoch.workers = static_cast<int>(std::min<int64_t>(least_at(L, 3, 0), 1024));
    epoch.prefetch = static_cast<int>(std::min<int64_t>(least_at(L, 4, 1), 1024));
    epoch.host = handle.host.get();
    epoch.device = current_place();
    epoch.is_bounded = lua_toboolean(L, 6);
    if (lua_toboolean(L, 5)) handle.times = std::make_unique<StageTimes>(*handle.node);
    epoch.times = handle.times.get();
    lua_settop(L, 1);
    push_handle(L, std::move(handle), kCursor, 2);
    lua_getiuservalue(L, 1, 1);
    lua_setiuservalue(L, 2, 1);
    lua_newtable(L);
    lua_setiuservalue(L, 2, 2);
    // Opening may draw rows, for instance to skip over a stream.
    lua_replace(L, 1);
    with_cursor(L, handle_at<CursorHandle>(L, 1, kCursor), [](Cursor&) { return true; });
    lua_settop(L, 1);
    return 1;
}

CursorHandle& open_cursor_at(lua_State* L, std::string_view where) {
    auto& handle = handle_at<CursorHandle>(L, 1, kCursor);
    if (!handle.cursor && !handle.interrupted) throw state_error(where, "the iterator was closed");
    if (handle.host->in_use())
        throw state_error(where, "the iterator is in use: one of its own functions asks it for a row");
    return handle;
}

// Takes account of batches that other threads allocate, since the pace of the collector only counts its own thread's
// allocations.
void keep_pace(lua_State* L, CursorHandle& handle, const Row& row) {
    constexpr int64_t kBytesBetweenSteps = 32 << 20;
    for (const Value& v : row)
        if (v.is_tensor()) handle.unpaced_bytes += static_cast<int64_t>(v.tensor().nbytes());
    if (handle.unpaced_bytes < kBytesBetweenSteps) return;
    handle.unpaced_bytes = 0;
    lua_gc(L, LUA_GCSTEP, 0);
}

// cursor:next(): the values of the next row, or nothing.
int next_row(lua_State* L) {
    CursorHandle& handle = open_cursor_at(L, "dataset");
    Row row;
    const auto next = [&](Cursor& cursor) {
        const PlaceScope host(nullptr);
        return cursor.next(row);
    };
    if (!with_cursor(L, handle, next)) return 0;
    ++handle.given;
    keep_pace(L, handle, row);
    place_row(row);
    const int count = static_cast<int>(row.size());
    push_row(L, std::move(row));
    return count;
}

// cursor:skip(count): the number of skipped rows.
int skip_rows(lua_State* L) {
    CursorHandle& handle = open_cursor_at(L, "dataset");
    const int64_t count = least_at(L, 2, 0);
    const int64_t skipped = with_cursor(L, handle, [&](Cursor& cursor) { return cursor.skip(count); });
    handle.given += skipped;
    lua_pushinteger(L, skipped);
    return 1;
}

// times(cursor): the tree with times in nanoseconds, and of the queue before the consumer: the number of requests, how
// many found it empty, nanoseconds of waiting, the mean number of rows in it and the number of places. Only for a
// cursor with times.
int stage_times(lua_State* L) {
    auto& handle = handle_at<CursorHandle>(L, 1, kCursor);
    if (!handle.times) return 0;
    StageTimes& times = *handle.times;
    push_tree(L, *handle.node, &times);
    lua_newtable(L);
    for (const auto& [name, value] : {std::pair{"asked", &times.asked},
                                      {"waits", &times.waits},
                                      {"waiting", &times.waiting},
                                      {"full", &times.full},
                                      {"places", &times.places}}) {
        lua_pushinteger(L, value->load());
        lua_setfield(L, -2, name);
    }
    return 2;
}

// recorded(cursor): how many of the functions that run as copies run without Lua, and how many of these for several
// rows at once.
int recorded(lua_State* L) {
    const auto [all, together] = handle_at<CursorHandle>(L, 1, kCursor).host->recorded();
    lua_pushinteger(L, static_cast<lua_Integer>(all));
    lua_pushinteger(L, static_cast<lua_Integer>(together));
    return 2;
}

int close_cursor(lua_State* L) {
    auto& handle = handle_at<CursorHandle>(L, 1, kCursor);
    if (handle.host->in_use()) throw state_error("close", "the iterator is in use by one of its own functions");
    handle.cursor.reset();
    handle.interrupted = false;
    return 0;
}

constexpr std::pair<const char*, lua_CFunction> kDatasetFunctions[] = {
    {"save_tfrecord", protect<save_tfrecord>},
    {"rows", protect<rows>},
    {"columns", protect<columns>},
    {"batch_size", protect<batch_size>},
    {"source", protect<make_source>},
    {"shuffle", protect<make_shuffle>},
    {"repeat_", protect<make_repeat>},
    {"skip", protect<make_skip>},
    {"take", protect<make_take>},
    {"select", protect<make_select>},
    {"zip", protect<make_joined<data::zip>>},
    {"concat", protect<make_joined<data::concat>>},
    {"part", protect<make_part>},
    {"map", protect<make_map>},
    {"map_anywhere", protect<make_map_anywhere>},
    {"filter", protect<make_filter>},
    {"stream", protect<make_stream>},
    {"transforms", protect<make_transforms>},
    {"results", protect<count_results>},
    {"transform", protect<apply_transform>},
    {"batch", protect<make_batch>},
    {"bucket", protect<make_bucket>},
    {"good", protect<make_good>},
    {"gate", protect<make_gate>},
    {"consent", protect<give_consent>},
    {"cache", protect<make_cache_handle>},
    {"cached", protect<make_cached>},
    {"cache_state", protect<cache_state>},
    {"tree", protect<tree>},
    {"times", protect<stage_times>},
    {"recorded", protect<recorded>},
    {"open", protect<open_cursor>},
    {"next", protect<next_row>},
    {"leave_out", protect<skip_rows>},
    {"close", protect<close_cursor>},
};

}  // namespace

int open_data(lua_State* L) {
    make_handle_type(L, kNode, protect<release_handle<NodePtr>>);
    make_handle_type(L, kTransformHandle, protect<release_handle<TransformPtr>>);
    make_handle_type(L, kCache, protect<release_handle<CachePtr>>);
    make_handle_type(L, kCursor, protect<release_handle<CursorHandle>>);
    lua_newtable(L);
    for (auto [name, function] : kDatasetFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    bind_data_sources(L);
    bind_mindrecord(L);
    return 1;
}

}  // namespace lunaria
