// Records and samplers, the sources of data sets, for the module "lunaria.data".
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/batch.h"
#include "core/data/files/csv.h"
#include "core/data/files/file_contents.h"
#include "core/data/files/fixed.h"
#include "core/data/files/mindrecord.h"
#include "core/data/files/tfrecord.h"
#include "core/tensor/turned.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"
#include "interpreter/workers/dataset_host.h"

namespace lunaria {

using namespace data;

namespace {

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

Samples samples_at(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return std::nullopt;
    return least_at(L, index, 0);
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
        if (const Tensor* given = tensor_at(L, -1)) {
            const Tensor t = row_major(*given);
            column.tensor = t.device() ? t.to_host() : t.view(t.shape(), t.strides());
        } else
            for (const std::string& text : names_at(L, -1)) column.texts.emplace_back(std::string_view(text));
        lua_pop(L, 1);
        columns.push_back(std::move(column));
    }
    push_handle(L, table_records(where, std::move(columns)), kRecordsHandle);
    return 1;
}

// files(name, paths, rest): rest may be nil.
int make_files(lua_State* L) {
    RecordsPtr rest = lua_isnoneornil(L, 3) ? nullptr : handle_at<RecordsPtr>(L, 3, kRecordsHandle);
    push_handle(L, file_records(text_at(L, 1), names_at(L, 2), std::move(rest)), kRecordsHandle);
    return 1;
}

int make_sound_decoder(lua_State* L) {
    push_transform(L, sound_decoder());
    return 1;
}

int make_text_splitter(lua_State* L) {
    push_transform(L, text_splitter());
    return 1;
}

int make_range(lua_State* L) {
    push_handle(L, range_records(text_at(L, 1), least_at(L, 2, 0)), kRecordsHandle);
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
    push_handle(L, csv_records(names_at(L, 1), options), kRecordsHandle);
    return 1;
}

int make_lines(lua_State* L) {
    push_handle(L, line_records(names_at(L, 1)), kRecordsHandle);
    return 1;
}

// fixed(paths, size): the records as a tensor of bytes.
int fixed(lua_State* L) {
    push(L, read_fixed(names_at(L, 1), least_at(L, 2, 1)));
    return 1;
}

int make_tfrecords(lua_State* L) {
    push_handle(L, tfrecord_records(names_at(L, 1), names_at(L, 2)), kRecordsHandle);
    return 1;
}

// mindrecords(paths, whole, names, skip_damaged): and the number of rows that were left out.
int make_mindrecords(lua_State* L) {
    int64_t skipped = 0;
    push_handle(L,
                mindrecord_records(names_at(L, 1), lua_toboolean(L, 2), names_at(L, 3), lua_toboolean(L, 4), &skipped),
                kRecordsHandle);
    lua_pushinteger(L, skipped);
    return 2;
}

// read(records, row): the values of a row, which count from 0.
int read_row(lua_State* L) {
    const RecordsPtr& records = handle_at<RecordsPtr>(L, 1, kRecordsHandle);
    const int64_t row = luaL_checkinteger(L, 2);
    if (row < 0 || row >= records->rows())
        throw index_error("dataset",
                          str("row ", row, " is out of range: there are ", records->rows(), ", which count from 0"));
    Row values;
    records->read(row, values);
    const int count = static_cast<int>(values.size());
    push_row(L, std::move(values));
    return count;
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
    push_handle(L, std::move(sampler), kSamplerHandle);
    return 1;
}

int chain(lua_State* L) {
    push_handle(
        L, chained_sampler(handle_at<SamplerPtr>(L, 1, kSamplerHandle), handle_at<SamplerPtr>(L, 2, kSamplerHandle)),
        kSamplerHandle);
    return 1;
}

// text(tensor): the bytes of a tensor of uint8.
int text_of(lua_State* L) {
    const Tensor t = check_tensor(L, 1, "text", "tensor").contiguous().to_host();
    if (t.dtype() != DType::u8)
        throw dtype_error("text", str("the tensor must be of dtype UInt8, got ", describe(L, 1)));
    push(L, std::string_view(static_cast<const char*>(t.raw()), t.nbytes()));
    return 1;
}

// bytes(text): the same the other way round.
int bytes_of(lua_State* L) {
    const std::string text = text_at(L, 1);
    const Tensor t = Tensor::empty(DType::u8, {static_cast<int64_t>(text.size())});
    std::copy(text.begin(), text.end(), t.data<char>());
    push(L, t);
    return 1;
}

// column(records, position): a column as one tensor, for samplers that look at labels.
int column(lua_State* L) {
    const RecordsPtr& records = handle_at<RecordsPtr>(L, 1, kRecordsHandle);
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

constexpr std::pair<const char*, lua_CFunction> kDataSourcesFunctions[] = {
    {"table", protect<make_table>},
    {"files", protect<make_files>},
    {"sound_decoder", protect<make_sound_decoder>},
    {"text_splitter", protect<make_text_splitter>},
    {"range", protect<make_range>},
    {"csv", protect<make_csv>},
    {"lines", protect<make_lines>},
    {"fixed", protect<fixed>},
    {"tfrecords", protect<make_tfrecords>},
    {"mindrecords", protect<make_mindrecords>},
    {"read", protect<read_row>},
    {"text", protect<text_of>},
    {"bytes", protect<bytes_of>},
    {"column", protect<column>},
    {"sampler", protect<make_sampler>},
    {"chain", protect<chain>},
};

}  // namespace

void bind_data_sources(lua_State* L) {
    make_handle_type(L, kRecordsHandle, protect<release_handle<RecordsPtr>>);
    make_handle_type(L, kSamplerHandle, protect<release_handle<SamplerPtr>>);
    for (auto [name, function] : kDataSourcesFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
}

}  // namespace lunaria
