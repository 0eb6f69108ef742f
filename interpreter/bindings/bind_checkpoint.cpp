// Functions behind the Lua files of checkpoints: ms.io.read_ckpt, ms.io.write_ckpt, ms.io.format_of, and the folders of
// checkpoints.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "core/base/printable.h"
#include "core/base/signals.h"
#include "core/base/spelling.h"
#include "core/base/warning.h"
#include "core/io/ckpt.h"
#include "core/io/safetensors.h"
#include "core/io/sealed.h"
#include "core/io/task.h"
#include "core/tensor/device.h"
#include "interpreter/bindings/draft.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

CkptCheck check_option(lua_State* L, int index) {
    if (lua_isnoneornil(L, index)) return CkptCheck::present;
    check_options(L, index, "read_ckpt", {"crc_check"});
    if (!push_option(L, index, "crc_check")) return CkptCheck::present;
    const bool required = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return required ? CkptCheck::required : CkptCheck::never;
}

// The content of a file: of an encrypted one under the key at the index.
std::unique_ptr<Source> ckpt_source(lua_State* L, const std::string& path, int key) {
    auto source = open_source(path);
    const bool has_key = !lua_isnoneornil(L, key);
    if (has_key) return open_sealed(*source, text_at(L, key), "dec_key is the enc_key with which it was saved");
    if (is_sealed(*source)) throw source->error("is encrypted, and there is no key").hint("give it as dec_key");
    return source;
}

// read_ckpt(path [, {crc_check = } [, key]]): tensors and texts by name, and the names in their order.
int read_ckpt_file(lua_State* L) {
    const CkptFile file(ckpt_source(L, path_at(L, 1, "read_ckpt"), 3), check_option(L, 2));
    const std::vector<std::string> names = file.names();
    lua_createtable(L, 0, static_cast<int>(names.size()));
    lua_createtable(L, static_cast<int>(names.size()), 0);
    for (size_t i = 0; i < names.size(); ++i) {
        CkptValue value = file.read(names[i]);
        push(L, std::string_view(names[i]));
        if (const std::string* text = std::get_if<std::string>(&value))
            push(L, std::string_view(*text));
        else
            push(L, std::get<Tensor>(value).to(current_place()));
        lua_rawset(L, -4);
        push(L, std::string_view(names[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
    return 2;
}

// The file is encrypted where there is a key.
void write_values(Sink& sink, std::span<const NamedCkptValue> values, bool checksum, std::string_view key) {
    if (key.empty()) return write_ckpt(sink, values, checksum);
    SealingSink sealing(sink, key);
    write_ckpt(sealing, values, checksum);
    sealing.finish();
}

// write_ckpt(path, values, names, checksum, later, key): the values of the names, in their order. later: a thread
// writes them. key: the file is encrypted.
int write_ckpt_file(lua_State* L) {
    const std::string path = path_at(L, 1, "write_ckpt");
    if (!lua_istable(L, 2) || !lua_istable(L, 3))
        throw argument_error("write_ckpt", "a table of tensors by name and a list of the names are expected");
    std::vector<NamedCkptValue> values;
    for (lua_Integer i = 1; lua_geti(L, 3, i) != LUA_TNIL; ++i) {
        if (lua_type(L, -1) != LUA_TSTRING)
            throw argument_error("write_ckpt", str("names must be a list of strings, it has ", describe(L, -1)));
        size_t size = 0;
        const char* text = lua_tolstring(L, -1, &size);
        const std::string name(text, size);
        lua_pushvalue(L, -1);
        lua_rawget(L, 2);
        if (const Tensor* tensor = tensor_at(L, -1)) {
            values.emplace_back(name, *tensor);
        } else if (lua_type(L, -1) == LUA_TSTRING) {
            text = lua_tolstring(L, -1, &size);
            values.emplace_back(name, std::string(text, size));
        } else {
            throw argument_error(
                "write_ckpt", str("the value under '", name, "' must be a tensor or a string, got ", describe(L, -1)));
        }
        lua_pop(L, 2);
    }
    const bool checksum = lua_toboolean(L, 4);
    const std::string key = lua_isnoneornil(L, 6) ? std::string() : text_at(L, 6);
    if (!lua_toboolean(L, 5)) {
        FileSink sink(path);
        write_values(sink, values, checksum, key);
        sink.commit();
        return 0;
    }
    for (auto& [name, value] : values)
        if (Tensor* tensor = std::get_if<Tensor>(&value)) value = snapshot(*tensor);
    write_file_later(
        path, [values = std::move(values), checksum, key](Sink& sink) { write_values(sink, values, checksum, key); });
    return 0;
}

// Waits for the file that a thread writes, and throws the error of the writing if there was one.
int finish_writing(lua_State*) {
    BackgroundWriter::instance().finish();
    return 0;
}

int is_writing(lua_State* L) {
    lua_pushboolean(L, BackgroundWriter::instance().is_busy());
    return 1;
}

// Files that a thread reads.
struct Reading {
    struct Part {
        std::string path;
        bool is_ckpt;
        CkptCheck check;
        std::vector<std::string> names;  // empty: all
        std::vector<NamedCkptValue> values;
        Metadata metadata;
    };
    std::vector<Part> parts;
    std::unique_ptr<Task> task;

    static void read(Part& part) {
        if (part.is_ckpt) {
            part.values = CkptFile(part.path, part.check).read_all();
            return;
        }
        const SafetensorsFile file(part.path);
        part.metadata = file.metadata();
        if (part.names.empty()) part.names = file.names();
        for (const std::string& name : part.names) part.values.emplace_back(name, file.read(name));
    }
};

// Signals that a program asks about; a handler may touch them.
std::atomic<bool> came[NSIG];

// signal_came(number [, forget]): whether the signal came since the last call. From the first call on the signal has no
// other effect, until `forget` restores its meaning.
int signal_came(lua_State* L) {
    const lua_Integer number = luaL_checkinteger(L, 1);
    if (number != SIGTERM && number != SIGHUP && number != SIGUSR1 && number != SIGUSR2)
        throw argument_error("signal_came",
                             str("the signals 1 (HUP), 10 (USR1), 12 (USR2) and 15 (TERM) can be asked about, got ",
                                 static_cast<long long>(number)));
    const int signal_number = static_cast<int>(number);
    if (lua_toboolean(L, 2)) {
        signal(signal_number, SIG_DFL);
    } else {
        handle_signal(
            signal_number, [](int which) { came[which].store(true); }, SA_RESTART);
    }
    lua_pushboolean(L, came[signal_number].exchange(false));
    return 1;
}

// as_whole(f, ...): calls f(...); an interrupt takes effect only after it.
int as_whole(lua_State* L) {
    const State::Whole whole(State::of(L));
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

constexpr const char* kReading = "lunaria.reading";

// read_later{ { path =, kind = "ckpt" or "safetensors", names =, crc_check = }, ... }: a handle for finish_reading.
int read_later(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    std::vector<Reading::Part> parts;
    auto text = [&](const char* key) {
        lua_getfield(L, -1, key);
        size_t size = 0;
        const char* bytes = lua_tolstring(L, -1, &size);
        std::string result(bytes ? bytes : "", size);
        lua_pop(L, 1);
        return result;
    };
    for (lua_Integer i = 1; lua_geti(L, 1, i) == LUA_TTABLE; ++i) {
        Reading::Part part{text("path"), text("kind") == "ckpt", CkptCheck::present, {}, {}, {}};
        if (lua_getfield(L, -1, "crc_check") != LUA_TNIL)
            part.check = lua_toboolean(L, -1) ? CkptCheck::required : CkptCheck::never;
        lua_pop(L, 1);
        if (lua_getfield(L, -1, "names") == LUA_TTABLE) {
            for (lua_Integer k = 1; lua_geti(L, -1, k) == LUA_TSTRING; ++k) {
                part.names.emplace_back(lua_tostring(L, -1));
                lua_pop(L, 1);
            }
            lua_pop(L, 1);
        }
        lua_pop(L, 2);
        parts.push_back(std::move(part));
    }
    make_handle_type(L, kReading, protect<release_handle<Reading>>);
    push_handle(L, Reading{std::move(parts), nullptr}, kReading);
    auto* reading = &handle_at<Reading>(L, -1, kReading);
    reading->task = std::make_unique<Task>([reading] {
        for (Reading::Part& part : reading->parts) Reading::read(part);
    });
    return 1;
}

// finish_reading(handle [, ask]): waits, and returns the values and the metadata of all files by name; with `ask` it
// only tells whether they are there.
int finish_reading(lua_State* L) {
    auto* reading = &handle_at<Reading>(L, 1, kReading);
    if (lua_toboolean(L, 2)) {
        lua_pushboolean(L, reading->task->is_done());
        return 1;
    }
    reading->task->wait();
    lua_newtable(L);
    lua_newtable(L);
    for (Reading::Part& part : reading->parts) {
        for (auto& [name, value] : part.values) {
            push(L, std::string_view(name));
            if (const std::string* text = std::get_if<std::string>(&value))
                push(L, std::string_view(*text));
            else
                push(L, std::get<Tensor>(value));
            lua_rawset(L, -4);
        }
        for (const auto& [key, text] : part.metadata) {
            push(L, std::string_view(key));
            push(L, std::string_view(text));
            lua_rawset(L, -3);
        }
    }
    return 2;
}

// The kind of a checkpoint by its first bytes: "ckpt", "safetensors", "zip", or "unknown".
int format_of(lua_State* L) {
    const auto source = open_source(path_at(L, 1, "format_of"));
    if (source->size() == 0) throw source->error("is empty, not a checkpoint");
    const std::string start = source->text(0, static_cast<size_t>(std::min<uint64_t>(source->size(), 9)));
    // Encrypted bytes may look like the beginning of a header, whose length must fit as well.
    uint64_t length = 0;
    std::memcpy(&length, start.data(), std::min(start.size(), sizeof length));
    const bool header = start.size() == 9 && start[8] == '{' && length <= source->size() - sizeof length;
    push(L, std::string_view(header                                                        ? "safetensors"
                             : start.starts_with("PK")                                     ? "zip"
                             : start[0] == '\x0a' || start.starts_with("\xd8\x5e\x3a\x7f") ? "ckpt"
                                                                                           : "unknown"));
    return 1;
}

// read_text(path, limit): a whole file, of 64 MiB where no limit is given.
int read_text(lua_State* L) {
    const std::string path = path_at(L, 1, "read_text");
    const lua_Integer limit = luaL_optinteger(L, 2, lua_Integer{64} << 20);
    if (limit < 0) throw argument_error("read_text", str("limit must not be negative, got ", limit));
    push(L, std::string_view(read_file(path, static_cast<uint64_t>(limit))));
    return 1;
}

// _read(path, limit): the same for functions of the library that raise errors in their own names: nil and a message
// where the file cannot be read.
int read_or_reason(lua_State* L) {
    try {
        return read_text(L);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::file) throw;
        lua_pushnil(L);
        push(L, std::string_view(error.what()));
        return 2;
    }
}

// The kind of the path: "file", "folder", "pipe", "socket" or "device"; nil where nothing has that path.
int kind(lua_State* L) {
    std::error_code failure;
    const auto type = std::filesystem::status(path_at(L, 1, "kind"), failure).type();
    using std::filesystem::file_type;
    if (type == file_type::none || type == file_type::not_found) return 0;
    push(L, std::string_view(type == file_type::regular     ? "file"
                             : type == file_type::directory ? "folder"
                             : type == file_type::fifo      ? "pipe"
                             : type == file_type::socket    ? "socket"
                                                            : "device"));
    return 1;
}

// temporary(ending): a new empty file with a unique name.
int temporary(lua_State* L) {
    push(L, std::string_view(make_temporary(luaL_optstring(L, 1, ""))));
    return 1;
}

int printable_text(lua_State* L) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, 1, &size);
    push(L, std::string_view(printable({text, size})));
    return 1;
}

// nearest(name, names): "did you mean 'x'?", or nil.
int nearest_name(lua_State* L) {
    luaL_checktype(L, 2, LUA_TTABLE);
    std::vector<std::string_view> names;
    const lua_Integer count = luaL_len(L, 2);
    // The table keeps the texts.
    for (lua_Integer i = 1; i <= count; ++i) {
        if (lua_rawgeti(L, 2, i) == LUA_TSTRING) names.push_back(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    luaL_checktype(L, 1, LUA_TSTRING);
    const std::string text = nearest(lua_tostring(L, 1), names);
    if (text.empty()) return 0;
    push(L, std::string_view(text));
    return 1;
}

// warn(place, text, hint)
int warn_text(lua_State* L) {
    const std::string text = printable(luaL_checkstring(L, 2)), hint = printable(luaL_optstring(L, 3, ""));
    warn(luaL_checkstring(L, 1), text, hint);
    return 0;
}

// make_folder(path): with the folders that it lies in.
int make_folder(lua_State* L) {
    const std::string path = path_at(L, 1, "make_folder");
    std::error_code failure;
    std::filesystem::create_directories(path, failure);
    if (failure || !std::filesystem::is_directory(path, failure))
        throw file_error(path,
                         str("this folder cannot be made: ", failure ? failure.message() : "a file has its name"));
    return 0;
}

// The names in a folder, sorted; nil when the path is not a folder.
int list_folder(lua_State* L) {
    const std::string path = path_at(L, 1, "list_folder");
    std::error_code failure;
    if (!std::filesystem::is_directory(path, failure)) return 0;
    std::vector<std::string> names;
    std::filesystem::directory_iterator entry(path, failure), end;
    for (; !failure && entry != end; entry.increment(failure)) names.push_back(entry->path().filename().string());
    if (failure) throw file_error(path, "cannot be read: " + failure.message());
    std::sort(names.begin(), names.end());
    lua_createtable(L, static_cast<int>(names.size()), 0);
    for (size_t i = 0; i < names.size(); ++i) {
        push(L, std::string_view(names[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
    return 1;
}

constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {{"read_ckpt", protect<read_ckpt_file>},
                                                                {"write_ckpt", protect<write_ckpt_file>},
                                                                {"format_of", protect<format_of>},
                                                                {"read_text", protect<read_text>},
                                                                {"make_folder", protect<make_folder>},
                                                                {"list_folder", protect<list_folder>},
                                                                {"finish_writing", protect<finish_writing>},
                                                                {"is_writing", protect<is_writing>},
                                                                {"signal_came", protect<signal_came>},
                                                                {"as_whole", protect<as_whole>},
                                                                {"read_later", protect<read_later>},
                                                                {"finish_reading", protect<finish_reading>},
                                                                {"kind", protect<kind>},
                                                                {"temporary", protect<temporary>},
                                                                {"printable", protect<printable_text>},
                                                                {"nearest", protect<nearest_name>},
                                                                {"warn", protect<warn_text>},
                                                                {"_read", protect<read_or_reason>}};

}  // namespace

// Adds these functions to ms.io.
void bind_checkpoints(lua_State* L) {
    lua_getfield(L, -1, "io");
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    bind_draft(L);
    lua_pop(L, 1);
}

}  // namespace lunaria
