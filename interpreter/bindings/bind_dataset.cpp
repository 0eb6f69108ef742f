// The module "lunaria.data": what lunaria/dataset/ is made of. Nodes, records and samplers of core/data are handles
// here; the Lua functions of a node and of those below it are in a table that its handle keeps.
#include <algorithm>
#include <cmath>

#include "core/data/batch.h"
#include "core/data/csv.h"
#include "core/data/fixed.h"
#include "core/data/functions.h"
#include "core/data/mindrecord.h"
#include "core/data/operations.h"
#include "core/data/tfrecord.h"
#include "core/interrupt.h"
#include "interpreter/bindings/dataset_host.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/values.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

using namespace data;

constexpr const char* kNode = "lunaria.data.node";
constexpr const char* kRecords = "lunaria.data.records";
constexpr const char* kSampler = "lunaria.data.sampler";
constexpr const char* kCursor = "lunaria.data.cursor";

// Handles hold shared pointers: the ones in Lua are among the owners.
template <class T>
void push_handle(lua_State* L, T value, const char* type, int user_values = 0) {
    void* place = lua_newuserdatauv(L, sizeof(T), user_values);
    new (place) T(std::move(value));
    luaL_setmetatable(L, type);
}

template <class T>
T& handle_at(lua_State* L, int index, const char* type) {
    return *static_cast<T*>(luaL_checkudata(L, index, type));
}

template <class T>
int release_handle(lua_State* L) {
    static_cast<T*>(lua_touserdata(L, 1))->~T();
    // Another call finds no handle.
    lua_pushnil(L);
    lua_setmetatable(L, 1);
    return 0;
}

NodePtr& node_at(lua_State* L, int index) { return handle_at<NodePtr>(L, index, kNode); }

std::string text_at(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

Names names_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    Names names;
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        names.push_back(text_at(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return names;
}

std::vector<double> numbers_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    std::vector<double> list;
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        list.push_back(luaL_checknumber(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return list;
}

// Counted from 0, below `count`.
std::vector<size_t> positions_at(lua_State* L, int index, size_t count) {
    std::vector<size_t> list;
    for (int64_t at : integers_at(L, index, "dataset", "positions")) {
        if (at < 0 || static_cast<size_t>(at) >= count) throw index_error("dataset", "a position is out of range");
        list.push_back(static_cast<size_t>(at));
    }
    if (list.empty()) throw argument_error("dataset", "there are no columns");
    return list;
}

int64_t least_at(lua_State* L, int index, int64_t least) {
    const lua_Integer value = luaL_checkinteger(L, index);
    if (value < least) throw argument_error("dataset", str("a number must be at least ", least, ", got ", value));
    return value;
}

uint64_t seed_at(lua_State* L, int index) { return static_cast<uint64_t>(luaL_checkinteger(L, index)); }

Samples samples_at(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return std::nullopt;
    return least_at(L, index, 0);
}

// Adds to the table on top what is in that of the node handle at `index`.
void add_functions(lua_State* L, int index) {
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
    for (int child : children) add_functions(L, child);
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

// table(where, names, columns): a column is a tensor or a list of texts.
int make_table(lua_State* L) {
    const std::string where = text_at(L, 1);
    Names names = names_at(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    std::vector<Column> columns;
    for (size_t i = 0; i < names.size(); ++i) {
        Column column{names[i], {}, {}};
        lua_geti(L, 3, static_cast<lua_Integer>(i) + 1);
        if (const Tensor* t = tensor_at(L, -1))
            column.tensor = t->view(t->shape(), t->strides());
        else
            for (const std::string& text : names_at(L, -1)) column.texts.emplace_back(std::string_view(text));
        lua_pop(L, 1);
        columns.push_back(std::move(column));
    }
    push_handle(L, table_records(where, std::move(columns)), kRecords);
    return 1;
}

int make_range(lua_State* L) {
    push_handle(L, range_records(text_at(L, 1), least_at(L, 2, 0)), kRecords);
    return 1;
}

// csv(paths, delimiter, names, types, defaults): types are "text", "integer" or "number".
int make_csv(lua_State* L) {
    CsvOptions options;
    const std::string delimiter = text_at(L, 2);
    if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == "\r")
        throw argument_error("CSVDataset", "field_delim must be one character, no quote and no line break");
    options.delimiter = delimiter[0];
    options.names = names_at(L, 3);
    for (const std::string& type : names_at(L, 4))
        options.types.push_back(type == "text" ? CellType::text
                                               : (type == "integer" ? CellType::integer : CellType::number));
    for (double number : numbers_at(L, 5)) {
        options.numbers.push_back(number);
        options.integers.push_back(std::abs(number) < 0x1p62 ? static_cast<int64_t>(number) : 0);
    }
    if (options.numbers.size() != options.types.size()) throw argument_error("CSVDataset", "types without defaults");
    push_handle(L, csv_records(names_at(L, 1), options), kRecords);
    return 1;
}

int make_lines(lua_State* L) {
    push_handle(L, line_records(names_at(L, 1)), kRecords);
    return 1;
}

// fixed(paths, size): the records as a tensor of bytes.
int fixed(lua_State* L) {
    push(L, read_fixed(names_at(L, 1), least_at(L, 2, 1)));
    return 1;
}

int make_tfrecords(lua_State* L) {
    push_handle(L, tfrecord_records(names_at(L, 1), names_at(L, 2)), kRecords);
    return 1;
}

// mindrecords(paths, whole, names)
int make_mindrecords(lua_State* L) {
    push_handle(L, mindrecord_records(names_at(L, 1), lua_toboolean(L, 2), names_at(L, 3)), kRecords);
    return 1;
}

// save_tfrecord(node, path): all rows of an epoch, whose number is given back.
int save_tfrecord(lua_State* L) {
    const NodePtr node = node_at(L, 1);
    const std::string path = path_at(L, 2, "save");
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 1);
    lua_newtable(L);
    DatasetHost host;
    const DatasetHost::Use use(host, L, 2, 3);
    Epoch epoch;
    epoch.host = &host;
    TfrecordWriter writer(path);
    const auto cursor = node->open(epoch);
    int64_t count = 0;
    for (Row row; cursor->next(row); ++count) {
        if (count % 1024 == 0) poll_interrupt();
        writer.write(node->columns(), row);
    }
    writer.commit();
    lua_pushinteger(L, count);
    return 1;
}

// rows(handle), of records or of a node: nothing when that is not known, math.huge for ever.
int rows(lua_State* L) {
    const auto* records = static_cast<RecordsPtr*>(luaL_testudata(L, 1, kRecords));
    const int64_t n = records ? (*records)->rows() : node_at(L, 1)->rows();
    if (n == kUnknownRows) return 0;
    if (n == kEndless)
        lua_pushnumber(L, HUGE_VAL);
    else
        lua_pushinteger(L, n);
    return 1;
}

int columns(lua_State* L) {
    const auto* records = static_cast<RecordsPtr*>(luaL_testudata(L, 1, kRecords));
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

// sampler(kind, seed, samples, ...)
int make_sampler(lua_State* L) {
    const std::string kind = text_at(L, 1);
    const uint64_t seed = seed_at(L, 2);
    const Samples samples = samples_at(L, 3);
    SamplerPtr sampler;
    if (kind == "sequential")
        sampler = sequential_sampler(least_at(L, 4, 0), samples);
    else if (kind == "random")
        sampler = random_sampler(lua_toboolean(L, 4), samples, seed);
    else if (kind == "subset")
        sampler = subset_sampler(integers_at(L, 4, "SubsetSampler", "indices"), samples, lua_toboolean(L, 5), seed);
    else if (kind == "weighted")
        sampler = weighted_sampler(numbers_at(L, 4), samples, lua_toboolean(L, 5), seed);
    else if (kind == "distributed")
        sampler = distributed_sampler(least_at(L, 4, 1), least_at(L, 5, 0), lua_toboolean(L, 6), samples, seed);
    else if (kind == "classes")
        sampler = class_sampler(integers_at(L, 4, "PKSampler", "labels"), least_at(L, 5, 1), samples_at(L, 6),
                                lua_toboolean(L, 7), samples, seed);
    else
        throw argument_error("sampler", "there is no such kind");
    push_handle(L, std::move(sampler), kSampler);
    return 1;
}

int chain(lua_State* L) {
    push_handle(L, chained_sampler(handle_at<SamplerPtr>(L, 1, kSampler), handle_at<SamplerPtr>(L, 2, kSampler)),
                kSampler);
    return 1;
}

// column(records, position): a column as one tensor, for samplers that look at labels.
int column(lua_State* L) {
    const RecordsPtr& records = handle_at<RecordsPtr>(L, 1, kRecords);
    const size_t at = positions_at(L, 2, records->columns().size()).front();
    std::vector<Row> list(static_cast<size_t>(records->rows()));
    for (size_t i = 0; i < list.size(); ++i) {
        Row row;
        records->read(static_cast<int64_t>(i), row);
        list[i].push_back(std::move(row[at]));
    }
    if (list.empty()) return 0;
    push_row(L, join("PKSampler", {records->columns()[at]}, list, 0));
    return 1;
}

int make_source(lua_State* L) {
    return push_node(L, source(handle_at<RecordsPtr>(L, 1, kRecords), handle_at<SamplerPtr>(L, 2, kSampler)), {});
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
    for (int i = 1; i <= count; ++i) add_functions(L, i);
    lua_pop(L, 1);
    return 1;
}

// part(node, begin, count, shuffled, seed)
int make_part(lua_State* L) {
    return push_node(L, part(node_at(L, 1), least_at(L, 2, 0), least_at(L, 3, 0), lua_toboolean(L, 4), seed_at(L, 5)),
                     {1});
}

// map(node, where, function, positions, names, seed, numbered)
int make_map(lua_State* L) {
    const NodePtr& child = node_at(L, 1);
    Names names = names_at(L, 5);
    if (names.empty()) throw argument_error("dataset", "there are no columns");
    return push_node(L,
                     map(child, text_at(L, 2), function_at(L, 3), positions_at(L, 4, child->columns().size()),
                         std::move(names), seed_at(L, 6), lua_toboolean(L, 7)),
                     {1}, 3);
}

// filter(node, function, positions, seed)
int make_filter(lua_State* L) {
    const NodePtr& child = node_at(L, 1);
    return push_node(L, filter(child, function_at(L, 2), positions_at(L, 3, child->columns().size()), seed_at(L, 4)),
                     {1}, 2);
}

// stream(where, function, names, rows, seed): without rows they are not known.
int make_stream(lua_State* L) {
    Names names = names_at(L, 3);
    if (names.empty()) throw argument_error("dataset", "there are no columns");
    const int64_t count = lua_isnil(L, 4) ? kUnknownRows : least_at(L, 4, 0);
    return push_node(L, stream(text_at(L, 1), function_at(L, 2), std::move(names), count, seed_at(L, 5)), {}, 2);
}

// batch(node, size, drop_remainder, workers, joined)
int make_batch(lua_State* L) {
    BatchOptions options{least_at(L, 2, 1), static_cast<bool>(lua_toboolean(L, 3)), -1};
    if (!lua_isnil(L, 4)) options.workers = static_cast<int>(std::min<int64_t>(least_at(L, 4, 0), 1024));
    return push_node(L, lua_toboolean(L, 5) ? batch(node_at(L, 1), options) : gather(node_at(L, 1), options), {1});
}

// A cursor in Lua. Its user values: the functions and the streams of DatasetHost.
struct CursorHandle {
    NodePtr node;
    std::unique_ptr<DatasetHost> host = std::make_unique<DatasetHost>();
    std::unique_ptr<Cursor> cursor;  // destroyed before what it refers to
    int64_t unpaced_bytes = 0;
};

// open(node, epoch, workers, prefetch)
int open_cursor(lua_State* L) {
    CursorHandle handle;
    handle.node = node_at(L, 1);
    Epoch epoch;
    epoch.number = epoch.order = seed_at(L, 2);
    epoch.workers = static_cast<int>(std::min<int64_t>(least_at(L, 3, 0), 1024));
    epoch.prefetch = static_cast<int>(std::min<int64_t>(least_at(L, 4, 1), 1024));
    epoch.host = handle.host.get();
    lua_settop(L, 1);
    push_handle(L, std::move(handle), kCursor, 2);
    lua_getiuservalue(L, 1, 1);
    lua_setiuservalue(L, 2, 1);
    lua_newtable(L);
    lua_setiuservalue(L, 2, 2);
    // Opening may draw rows: skip over a stream, for instance.
    auto& kept = handle_at<CursorHandle>(L, 2, kCursor);
    lua_getiuservalue(L, 2, 1);
    lua_getiuservalue(L, 2, 2);
    const DatasetHost::Use use(*kept.host, L, 3, 4);
    kept.cursor = kept.node->open(epoch);
    lua_settop(L, 2);
    return 1;
}

CursorHandle& open_cursor_at(lua_State* L, std::string_view where) {
    auto& handle = handle_at<CursorHandle>(L, 1, kCursor);
    if (!handle.cursor) throw state_error(where, "the iterator was closed");
    if (handle.host->in_use())
        throw state_error(where, "the iterator is in use: one of its own functions asks it for a row");
    return handle;
}

// Batches that other threads allocate are not seen by the pace of the collector, which counts what its own thread does.
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
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 1);
    lua_getiuservalue(L, 1, 2);
    Row row;
    {
        const DatasetHost::Use use(*handle.host, L, 2, 3);
        if (!handle.cursor->next(row)) return 0;
    }
    keep_pace(L, handle, row);
    const int count = static_cast<int>(row.size());
    push_row(L, std::move(row));
    return count;
}

// cursor:skip(count): how many rows there were.
int skip_rows(lua_State* L) {
    CursorHandle& handle = open_cursor_at(L, "dataset");
    const int64_t count = least_at(L, 2, 0);
    lua_settop(L, 1);
    lua_getiuservalue(L, 1, 1);
    lua_getiuservalue(L, 1, 2);
    const DatasetHost::Use use(*handle.host, L, 2, 3);
    lua_pushinteger(L, handle.cursor->skip(count));
    return 1;
}

int close_cursor(lua_State* L) {
    auto& handle = handle_at<CursorHandle>(L, 1, kCursor);
    if (handle.host->in_use()) throw state_error("close", "the iterator is in use by one of its own functions");
    handle.cursor.reset();
    return 0;
}

void make_type(lua_State* L, const char* name, lua_CFunction release) {
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, release);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {
    {"table", protect<make_table>},
    {"range", protect<make_range>},
    {"csv", protect<make_csv>},
    {"lines", protect<make_lines>},
    {"fixed", protect<fixed>},
    {"tfrecords", protect<make_tfrecords>},
    {"mindrecords", protect<make_mindrecords>},
    {"save_tfrecord", protect<save_tfrecord>},
    {"rows", protect<rows>},
    {"columns", protect<columns>},
    {"column", protect<column>},
    {"batch_size", protect<batch_size>},
    {"sampler", protect<make_sampler>},
    {"chain", protect<chain>},
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
    {"filter", protect<make_filter>},
    {"stream", protect<make_stream>},
    {"batch", protect<make_batch>},
    {"open", protect<open_cursor>},
    {"next", protect<next_row>},
    {"leave_out", protect<skip_rows>},
    {"close", protect<close_cursor>},
};

}  // namespace

int open_data(lua_State* L) {
    make_type(L, kNode, protect<release_handle<NodePtr>>);
    make_type(L, kRecords, protect<release_handle<RecordsPtr>>);
    make_type(L, kSampler, protect<release_handle<SamplerPtr>>);
    make_type(L, kCursor, protect<release_handle<CursorHandle>>);
    lua_newtable(L);
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
