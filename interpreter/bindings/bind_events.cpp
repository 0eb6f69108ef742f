// ms.io.read_events, the base of ms.train.SummaryReader, and what writing an event file needs of C++.
#include <memory>

#include "core/data/files/histogram.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

void set_field(lua_State* L, const char* name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

void set_field(lua_State* L, const char* name, std::string_view text) {
    push(L, text);
    lua_setfield(L, -2, name);
}

void set_field(lua_State* L, const char* name, const std::vector<double>& list) {
    lua_createtable(L, static_cast<int>(list.size()), 0);
    for (size_t i = 0; i < list.size(); ++i) {
        lua_pushnumber(L, list[i]);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
    lua_setfield(L, -2, name);
}

void push_histogram(lua_State* L, const Shown::Histogram& h) {
    lua_createtable(L, 0, 10);
    set_field(L, "min", h.least);
    set_field(L, "max", h.most);
    set_field(L, "count", h.count);
    set_field(L, "sum", h.sum);
    set_field(L, "sum_squares", h.squares);
    set_field(L, "nan", h.nan);
    set_field(L, "positive_infinity", h.up);
    set_field(L, "negative_infinity", h.down);
    set_field(L, "limits", h.limits);
    set_field(L, "counts", h.counts);
}

void push_encoded(lua_State* L, const Shown::Encoded& encoded) {
    lua_createtable(L, 0, 5);
    for (const auto& [name, value] : encoded.about) set_field(L, name.c_str(), value);
    if (!encoded.type.empty()) set_field(L, "type", std::string_view(encoded.type));
    set_field(L, "bytes", std::string_view(encoded.bytes));
}

void push_content(lua_State* L, const Shown& shown) {
    if (const auto* figure = std::get_if<double>(&shown.value))
        lua_pushnumber(L, *figure);
    else if (const auto* text = std::get_if<std::string>(&shown.value))
        push(L, std::string_view(*text));
    else if (const auto* histogram = std::get_if<Shown::Histogram>(&shown.value))
        push_histogram(L, *histogram);
    else if (const auto* encoded = std::get_if<Shown::Encoded>(&shown.value))
        push_encoded(L, *encoded);
    else if (const auto* tensor = std::get_if<Tensor>(&shown.value))
        push(L, *tensor);
    else
        push(L, std::string_view(std::get<Shown::Data>(shown.value).bytes));
}

void push_event(lua_State* L, const Event& event) {
    lua_createtable(L, 0, 5);
    set_field(L, "wall_time", event.wall_time);
    lua_pushinteger(L, event.step);
    lua_setfield(L, -2, "step");
    if (!event.version.empty()) set_field(L, "version", std::string_view(event.version));
    if (event.has_graph) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "has_graph");
    }
    lua_createtable(L, static_cast<int>(event.values.size()), 0);
    for (size_t i = 0; i < event.values.size(); ++i) {
        lua_createtable(L, 0, 3);
        set_field(L, "tag", std::string_view(event.values[i].tag));
        set_field(L, "kind", std::string_view(event.values[i].kind));
        push_content(L, event.values[i]);
        lua_setfield(L, -2, "value");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
    lua_setfield(L, -2, "values");
    if (event.others.empty()) return;
    lua_newtable(L);
    for (const auto& [number, bytes] : event.others) {
        push(L, std::string_view(bytes));
        lua_rawseti(L, -2, number);
    }
    lua_setfield(L, -2, "others");
}

// event_frame(content): the content between its length and its check sums.
int event_frame(lua_State* L) {
    size_t size = 0;
    const char* bytes = luaL_checklstring(L, 1, &size);
    StringSink sink;
    append_frame(sink, std::string_view(bytes, size));
    push(L, std::string_view(sink.text()));
    return 1;
}

constexpr int64_t kBins = 50;

// histogram_values(tag, x): x as the two values of a histogram (Summary.Value). x: float32 or float64, dense, not
// empty.
int histogram_values_of(lua_State* L) {
    const std::string_view tag = luaL_checkstring(L, 1);
    const Tensor* x = tensor_at(L, 2);
    if (!x || (x->dtype() != DType::f32 && x->dtype() != DType::f64) || x->size() == 0)
        throw argument_error("histogram_values", "x must be a tensor of float32 or float64 that is not empty");
    for (const std::string& value : histogram_values(tag, histogram_of(x->contiguous(), kBins)))
        push(L, std::string_view(value));
    return 2;
}

// read_events(path, partial, offset, record, count): up to `count` events from `offset` on, where record number
// `record` begins; the offset of the next one and its number.
int read_events(lua_State* L) {
    const std::string path = path_at(L, 1, "read_events");
    const auto number = [&](int index, const char* name) {
        if (lua_isnoneornil(L, index)) return int64_t{0};
        const int64_t value = integer_at(L, index, "read_events", name);
        if (value < 0) throw argument_error("read_events", str(name, " must not be negative, got ", value));
        return value;
    };
    const int64_t offset = number(3, "offset"), record = number(4, "record");
    const int64_t count = lua_isnoneornil(L, 5) ? INT64_MAX : number(5, "count");
    EventReader reader(open_source(path), lua_toboolean(L, 2), static_cast<uint64_t>(offset),
                       static_cast<size_t>(record));
    lua_newtable(L);
    for (int64_t i = 1; i <= count; ++i) {
        const auto event = reader.next();
        if (!event) break;
        push_event(L, *event);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i));
    }
    lua_pushinteger(L, static_cast<lua_Integer>(reader.offset()));
    lua_pushinteger(L, static_cast<lua_Integer>(reader.record()));
    return 3;
}

}  // namespace

// Adds the functions to ms.io.
void bind_events(lua_State* L) {
    lua_getfield(L, -1, "io");
    lua_pushcfunction(L, protect<read_events>);
    lua_setfield(L, -2, "read_events");
    lua_pushcfunction(L, protect<event_frame>);
    lua_setfield(L, -2, "event_frame");
    lua_pushcfunction(L, protect<histogram_values_of>);
    lua_setfield(L, -2, "histogram_values");
    lua_pop(L, 1);
}

}  // namespace lunaria
