// ms.save, ms.load and the readers and writers of single formats in ms.io.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "core/io/idx.h"
#include "core/io/npz.h"
#include "core/io/safetensors.h"
#include "core/io/secure_random.h"
#include "core/io/task.h"
#include "core/tensor/device.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// In lower case, with its dot; empty when there is none.
std::string extension_of(const std::string& path) {
    const size_t slash = path.rfind('/'), dot = path.rfind('.');
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return {};
    std::string extension = path.substr(dot);
    for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return extension;
}

[[noreturn]] void refuse_pickle(const std::string& path) {
    throw file_error(path, "is a Python pickle by its name; reading one could run any code in it, so it is refused")
        .hint(
            "in Python, convert it: safetensors.torch.save_file(torch.load(path, weights_only=True), "
            "\"weights.safetensors\")");
}

enum class Format { npy, npz, safetensors, gguf, idx, mindir, onnx };

Format format_of_content(const std::string& path) {
    auto source = open_source(path);
    const std::string start = source->text(0, static_cast<size_t>(std::min<uint64_t>(source->size(), 9)));
    if (start.empty()) throw source->error("is empty");
    if (start.starts_with(kNpyMagic)) return Format::npy;
    if (start.starts_with("PK")) return Format::npz;
    if (start.size() == 9 && start[8] == '{') return Format::safetensors;
    if (start.starts_with("GGUF")) return Format::gguf;
    if (start.starts_with("\x1f\x8b") || start.starts_with(std::string_view("\0\0", 2))) return Format::idx;
    throw source->error(
        "has an unknown format; .npy, .npz, .safetensors, .gguf, .mindir, .onnx and idx files can be loaded");
}

Format format_to_load(const std::string& path) {
    const std::string extension = extension_of(path);
    if (extension == ".npy") return Format::npy;
    if (extension == ".npz") return Format::npz;
    if (extension == ".safetensors") return Format::safetensors;
    if (extension == ".mindir") return Format::mindir;
    if (extension == ".onnx") return Format::onnx;
    for (const char* pickle : {".pt", ".pth", ".pkl", ".pickle"})
        if (extension == pickle) refuse_pickle(path);
    return format_of_content(path);
}

Format format_to_save(const std::string& path) {
    const std::string extension = extension_of(path);
    if (extension == ".npy") return Format::npy;
    if (extension == ".npz") return Format::npz;
    if (extension == ".safetensors") return Format::safetensors;
    throw argument_error("save",
                         str("the file's extension says the format: .npy for one tensor, .npz or .safetensors for "
                             "a table of them; '",
                             path, "' has ", extension.empty() ? "none" : "the unknown " + extension));
}

// The option `names` of the table at `index`: the names to read; empty means everything.
std::vector<std::string> names_option(lua_State* L, int index, std::string_view where,
                                      std::initializer_list<std::string_view> known = {"names"}) {
    std::vector<std::string> names;
    if (lua_isnoneornil(L, index)) return names;
    if (!lua_istable(L, index)) throw argument_error(where, str("options must be a table, got ", describe(L, index)));
    check_options(L, index, where, known);
    if (!push_option(L, index, "names")) return names;
    if (!lua_istable(L, -1)) throw argument_error(where, str("names must be a list, got ", describe(L, -1)));
    for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; ++i) {
        if (lua_type(L, -1) != LUA_TSTRING)
            throw argument_error(where, str("names must be a list of strings, it has ", describe(L, -1)));
        names.emplace_back(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return names;
}

Value here(Value value) { return value.is_tensor() ? Value(value.tensor().to(current_place())) : value; }

// A table of the tensors of an open file.
template <class File>
int push_tensors(lua_State* L, const File& file, std::vector<std::string> names) {
    if (names.empty()) names = file.names();
    lua_createtable(L, 0, static_cast<int>(names.size()));
    for (const std::string& name : names) {
        push(L, std::string_view(name));
        push(L, here(file.read(name)));
        lua_rawset(L, -3);
    }
    return 1;
}

int read_npy_file(lua_State* L) {
    push(L, here(read_npy_value(*open_source(path_at(L, 1, "read_npy")))));
    return 1;
}

int read_idx_file(lua_State* L) {
    push(L, read_idx(path_at(L, 1, "read_idx")).to(current_place()));
    return 1;
}

int read_npz_file(lua_State* L) {
    const NpzFile file(path_at(L, 1, "read_npz"));
    return push_tensors(L, file, names_option(L, 2, "read_npz"));
}

int read_safetensors_file(lua_State* L) {
    const std::string path = path_at(L, 1, "read_safetensors");
    std::vector<std::string> names = names_option(L, 2, "read_safetensors", {"names", "mmap"});
    auto contents = SafetensorsFile::Contents::read;
    if (lua_istable(L, 2) && push_option(L, 2, "mmap")) {
        if (!lua_isboolean(L, -1))
            throw argument_error("read_safetensors", str("mmap must be true or false, got ", describe(L, -1)));
        if (lua_toboolean(L, -1)) contents = SafetensorsFile::Contents::mapped;
        lua_pop(L, 1);
    }
    const SafetensorsFile file(path, contents);
    push_tensors(L, file, std::move(names));
    lua_createtable(L, 0, static_cast<int>(file.metadata().size()));
    for (const auto& [key, text] : file.metadata()) {
        push(L, std::string_view(key));
        push(L, std::string_view(text));
        lua_rawset(L, -3);
    }
    return 2;
}

int load(lua_State* L) {
    const std::string path = path_at(L, 1, "load");
    switch (format_to_load(path)) {
        case Format::npy:
            return read_npy_file(L);
        case Format::npz:
            return read_npz_file(L);
        case Format::safetensors:
            return read_safetensors_file(L);
        case Format::gguf:
            return load_gguf(L);
        case Format::mindir:
            return load_mindir(L);
        case Format::onnx:
            return load_onnx(L);
        default:
            return read_idx_file(L);
    }
}

int load_torch(lua_State* L) { refuse_pickle(path_at(L, 1, "load_torch")); }

// Tensors by name, sorted, so that equal tables make equal files. A list gets NumPy's names for arrays without one.
std::vector<NamedTensor> named_tensors(lua_State* L, int index, std::string_view where) {
    if (!lua_istable(L, index))
        throw argument_error(where, str("a table of tensors by name is expected, got ", describe(L, index)));
    std::vector<NamedTensor> tensors;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        std::string name;
        if (lua_type(L, -2) == LUA_TSTRING) {
            size_t size = 0;
            const char* text = lua_tolstring(L, -2, &size);
            name.assign(text, size);
        } else if (lua_isinteger(L, -2)) {
            name = str("arr_", lua_tointeger(L, -2) - 1);
        } else {
            throw argument_error(where, str("a tensor's name must be a string, got ", describe(L, -2)));
        }
        const Tensor* tensor = tensor_at(L, -1);
        if (!tensor)
            throw argument_error(where, str("the value under '", name, "' must be a tensor, got ", describe(L, -1)));
        tensors.emplace_back(std::move(name), *tensor);
        lua_pop(L, 1);
    }
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return tensors;
}

int write_npy_file(lua_State* L) {
    const std::string path = path_at(L, 1, "write_npy");
    const Tensor tensor = check_tensor(L, 2, "write_npy", "tensor");
    write_npy(path, tensor);
    return 0;
}

int write_npz_file(lua_State* L) {
    const std::string path = path_at(L, 1, "write_npz");
    bool compressed = false;
    if (!lua_isnoneornil(L, 3)) {
        check_options(L, 3, "write_npz", {"compressed"});
        compressed = push_option(L, 3, "compressed") && lua_toboolean(L, -1);
    }
    write_npz(path, named_tensors(L, 2, "write_npz"), compressed);
    return 0;
}

int write_safetensors_file(lua_State* L) {
    const std::string path = path_at(L, 1, "write_safetensors");
    Metadata metadata;
    bool later = false;
    if (!lua_isnoneornil(L, 3)) {
        check_options(L, 3, "write_safetensors", {"metadata", "later"});
        if (push_option(L, 3, "later")) {
            later = lua_toboolean(L, -1);
            lua_pop(L, 1);
        }
        if (push_option(L, 3, "metadata")) {
            if (!lua_istable(L, -1))
                throw argument_error("write_safetensors", str("metadata must be a table, got ", describe(L, -1)));
            lua_pushnil(L);
            while (lua_next(L, -2)) {
                if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
                    throw argument_error("write_safetensors", "metadata must map strings to strings");
                metadata.emplace_back(lua_tostring(L, -2), lua_tostring(L, -1));
                lua_pop(L, 1);
            }
            std::sort(metadata.begin(), metadata.end());
        }
    }
    std::vector<NamedTensor> tensors = named_tensors(L, 2, "write_safetensors");
    if (!later) {
        write_safetensors(path, tensors, metadata);
        return 0;
    }
    for (auto& [name, tensor] : tensors) tensor = snapshot(tensor);
    write_file_later(path, [tensors = std::move(tensors), metadata = std::move(metadata)](Sink& sink) {
        write_safetensors(sink, tensors, metadata);
    });
    return 0;
}

int save(lua_State* L) {
    const std::string path = path_at(L, 1, "save");
    const Format format = format_to_save(path);
    const bool is_tensor = tensor_at(L, 2) != nullptr;
    if (format == Format::npy && !is_tensor)
        throw argument_error("save", str("an .npy file holds one tensor, got ", describe(L, 2)))
            .hint("save a table of tensors as .npz or .safetensors");
    if (format != Format::npy && is_tensor)
        throw argument_error("save",
                             str("an ", extension_of(path), " file holds tensors by name, got ", describe(L, 2)))
            .hint("save {name = tensor}, or use the extension .npy");
    switch (format) {
        case Format::npy:
            return write_npy_file(L);
        case Format::npz:
            return write_npz_file(L);
        default:
            return write_safetensors_file(L);
    }
}

// secure_words(count): so many integers of 64 random bits of the system's cryptographic generator.
int secure_words(lua_State* L) {
    const int64_t count = integer_at(L, 1, "secure_words", "count");
    if (count < 0 || count > (int64_t{1} << 34))
        throw value_error("secure_words", str("count must be from 0 to 2^34, got ", count));
    std::vector<int64_t> words(static_cast<size_t>(count));
    secure_random("secure_words", words.data(), words.size() * sizeof(int64_t));
    push(L, Tensor::from<int64_t>(words, {count}).to(current_place()));
    std::memset(words.data(), 0, words.size() * sizeof(int64_t));
    return 1;
}

constexpr std::pair<const char*, lua_CFunction> kFormats[] = {
    {"secure_words", protect<secure_words>}, {"read_npy", protect<read_npy_file>},
    {"read_npz", protect<read_npz_file>},    {"read_safetensors", protect<read_safetensors_file>},
    {"read_idx", protect<read_idx_file>},    {"write_npy", protect<write_npy_file>},
    {"write_npz", protect<write_npz_file>},  {"write_safetensors", protect<write_safetensors_file>}};

// The functions, under the names that users of other frameworks look for.
constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {{"load", protect<load>},
                                                                {"save", protect<save>},
                                                                {"load_idx", protect<read_idx_file>},
                                                                {"load_numpy", protect<load>},
                                                                {"load_safetensors", protect<read_safetensors_file>},
                                                                {"save_safetensors", protect<write_safetensors_file>},
                                                                {"load_torch", protect<load_torch>}};

}  // namespace

void bind_io(lua_State* L) {
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    lua_newtable(L);
    for (auto [name, function] : kFormats) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    lua_setfield(L, -2, "io");
}

}  // namespace lunaria
