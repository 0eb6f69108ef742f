// The module "lunaria.shards" behind lunaria/parallel/checkpoint.lua: files with the pieces of tensors that ranks hold.
#include <algorithm>
#include <cstdio>

#include "core/io/crc32c.h"
#include "core/io/task.h"
#include "core/parallel/environment.h"
#include "core/parallel/laid.h"
#include "core/parallel/shards.h"
#include "core/tensor/device.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

using namespace parallel;

namespace {

constexpr const char* kShards = "lunaria.shards";
using ShardsPtr = std::unique_ptr<Shards>;

const Shards& shards_at(lua_State* L) { return *handle_at<ShardsPtr>(L, 1, kShards); }

std::string text_of_field(lua_State* L, int index, const char* key) {
    lua_getfield(L, index, key);
    size_t size = 0;
    const char* text = lua_tolstring(L, -1, &size);
    std::string result(text ? text : "", size);
    lua_pop(L, 1);
    return result;
}

int64_t number_field(lua_State* L, int index, const char* key) {
    lua_getfield(L, index, key);
    const int64_t number = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return number;
}

Shape sizes_field(lua_State* L, int index, const char* key) {
    lua_getfield(L, index, key);
    const Shape sizes(integers_at(L, -1, "shards", key));
    lua_pop(L, 1);
    return sizes;
}

template <class Key, class T>
void set_field(lua_State* L, Key key, const T& value) {
    if constexpr (std::is_integral_v<T>)
        lua_pushinteger(L, value);
    else
        push(L, value);
    lua_setfield(L, -2, key);
}

// open(path): the pieces in a folder, or in one file.
int open_files(lua_State* L) {
    push_handle(L, std::make_unique<Shards>(path_at(L, 1, "load_checkpoint")), kShards);
    return 1;
}

// files(shards): a list of { path =, size =, rank =, metadata = }, the number of ranks, and a list of those absent.
int list_files(lua_State* L) {
    const Shards& shards = shards_at(L);
    lua_createtable(L, static_cast<int>(shards.files().size()), 0);
    lua_Integer i = 0;
    for (const Shards::File& file : shards.files()) {
        lua_createtable(L, 0, 4);
        set_field(L, "path", std::string_view(file.path));
        set_field(L, "size", static_cast<lua_Integer>(file.size));
        set_field(L, "rank", file.rank);
        lua_createtable(L, 0, static_cast<int>(file.metadata.size()));
        for (const auto& [key, text] : file.metadata) set_field(L, key.c_str(), std::string_view(text));
        lua_setfield(L, -2, "metadata");
        lua_rawseti(L, -2, ++i);
    }
    lua_pushinteger(L, shards.ranks());
    lua_newtable(L);
    i = 0;
    for (int64_t rank : shards.absent()) {
        lua_pushinteger(L, rank);
        lua_rawseti(L, -2, ++i);
    }
    return 3;
}

// names(shards): those of the tensors, sorted.
int names(lua_State* L) {
    const Shards& shards = shards_at(L);
    lua_createtable(L, static_cast<int>(shards.tensors().size()), 0);
    lua_Integer i = 0;
    for (const auto& [name, tensor] : shards.tensors()) {
        push(L, std::string_view(name));
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

// tensor(shards, name): { dtype =, shape =, mesh =, layout =, parts = { { file =, replica =, place = }, ... } }, or
// nil.
int describe_tensor(lua_State* L) {
    const Shards& shards = shards_at(L);
    const auto found = shards.tensors().find(luaL_checkstring(L, 2));
    if (found == shards.tensors().end()) return 0;
    const Shards::Whole& tensor = found->second;
    lua_createtable(L, 0, 5);
    set_field(L, "dtype", tensor.dtype);
    set_field(L, "shape", tensor.shape);
    set_field(L, "mesh", std::string_view(tensor.mesh));
    set_field(L, "layout", std::string_view(tensor.layout));
    lua_createtable(L, static_cast<int>(tensor.parts.size()), 0);
    lua_Integer i = 0;
    for (const Shards::Part& part : tensor.parts) {
        lua_createtable(L, 0, 4);
        set_field(L, "file", static_cast<lua_Integer>(part.file + 1));
        set_field(L, "replica", part.replica);
        set_field(L, "elements", elements(part.place));
        set_field(L, "place", std::string_view(str(part.place)));
        lua_rawseti(L, -2, ++i);
    }
    lua_setfield(L, -2, "parts");
    return 1;
}

// read(shards, name [, offsets, sizes [, check]]): the elements of a region, of all without one. check: false does not
// compare sums.
int read_tensor(lua_State* L) {
    const Shards& shards = shards_at(L);
    const std::string name = text_at(L, 2);
    Region region;
    if (lua_isnoneornil(L, 3)) {
        region = whole(shards.at(name).shape);
    } else {
        const std::vector<int64_t> offsets = integers_at(L, 3, "shards", "offsets");
        const std::vector<int64_t> sizes = integers_at(L, 4, "shards", "sizes");
        for (size_t i = 0; i < offsets.size() && i < sizes.size(); ++i)
            region.push_back({offsets[i], offsets[i] + sizes[i]});
    }
    const bool checks = lua_isnoneornil(L, 5) || lua_toboolean(L, 5);
    push(L, shards.read(name, region, checks ? Shards::Check::sums : Shards::Check::nothing).to(current_place()));
    return 1;
}

// missing(shards, name): the regions that are in no file, as texts.
int missing(lua_State* L) {
    lua_newtable(L);
    lua_Integer i = 0;
    for (const Region& region : shards_at(L).missing(text_at(L, 2))) {
        push(L, std::string_view(str(region)));
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

// verify(shards, file): compares the sums of a file, counted from 1.
int verify(lua_State* L) {
    const Shards& shards = shards_at(L);
    const lua_Integer file = luaL_checkinteger(L, 2);
    luaL_argcheck(L, file >= 1 && static_cast<size_t>(file) <= shards.files().size(), 2, "no such file");
    shards.verify(static_cast<size_t>(file - 1));
    return 0;
}

int bytes_read(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(shards_at(L).bytes_read()));
    return 1;
}

// write(path, pieces, metadata [, step]): a list of { name =, tensor =, shape =, offsets =, replica =, mesh =, layout =
// } to a rank's file. step: { draft =, final =, ranks =, later = }, the step that may be complete with this file;
// later: a thread writes it. Gives whether the step is complete by it.
int write_file_of_pieces(lua_State* L) {
    const std::string path = path_at(L, 1, "save_checkpoint");
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    std::vector<Piece> pieces;
    for (lua_Integer i = 1; lua_geti(L, 2, i) == LUA_TTABLE; ++i) {
        const int at = lua_gettop(L);
        Piece piece;
        piece.name = text_of_field(L, at, "name");
        lua_getfield(L, at, "tensor");
        piece.tensor = check_tensor(L, -1, "save_checkpoint", piece.name);
        lua_pop(L, 1);
        piece.whole = sizes_field(L, at, "shape");
        piece.offsets = sizes_field(L, at, "offsets");
        piece.replica = number_field(L, at, "replica");
        piece.mesh = text_of_field(L, at, "mesh");
        piece.layout = text_of_field(L, at, "layout");
        pieces.push_back(std::move(piece));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    Metadata metadata;
    lua_pushnil(L);
    while (lua_next(L, 3)) {
        metadata.emplace_back(luaL_checkstring(L, -2), luaL_checkstring(L, -1));
        lua_pop(L, 1);
    }
    std::sort(metadata.begin(), metadata.end());
    std::string draft, final;
    int64_t ranks = 0;
    bool later = false;
    if (lua_istable(L, 4)) {
        draft = text_of_field(L, 4, "draft");
        final = text_of_field(L, 4, "final");
        ranks = number_field(L, 4, "ranks");
        lua_getfield(L, 4, "later");
        later = lua_toboolean(L, -1);
    }
    if (later)
        for (Piece& piece : pieces) piece.tensor = snapshot(piece.tensor);
    const auto interrupts = later ? FileSink::Interrupts::ignored : FileSink::Interrupts::noticed;
    // Shared because std::function needs a copyable function; the one that runs is the only owner.
    auto sink = std::make_shared<FileSink>(path, interrupts);
    auto work = [sink, pieces = std::move(pieces), metadata = std::move(metadata), draft, final, ranks] {
        write_pieces(*sink, pieces, metadata);
        sink->commit();
        return ranks > 0 && complete_step(draft, final, ranks);
    };
    sink.reset();
    bool complete = false;
    if (later)
        BackgroundWriter::instance().start(path, [work = std::move(work)] { work(); });
    else
        complete = work();
    lua_pushboolean(L, complete);
    return 1;
}

// writer_of(name, replicas), name_of(rank, ranks)
int writer(lua_State* L) {
    lua_pushinteger(L, writer_of(text_at(L, 1), luaL_checkinteger(L, 2)));
    return 1;
}

int name_of_file(lua_State* L) {
    push(L, std::string_view(shard_name(luaL_checkinteger(L, 1), luaL_checkinteger(L, 2))));
    return 1;
}

// place(): the rank of this process, the number of ranks, and a name that only the ranks of this run share.
int place(lua_State* L) {
    const Environment own = environment();
    lua_pushinteger(L, own.rank);
    lua_pushinteger(L, own.ranks);
    push(L, std::string_view(own.ranks == 1 ? "" : str(own.job, "-", own.attempt)));
    return 3;
}

// held(tensor): of a laid-out tensor the pieces that this process holds, a list of { rank =, tensor =, shape =, offsets
// =, replica =, replicas =, mesh =, layout = }; rank is nil where each rank of the program has the whole tensor. Nil
// for other tensors. One that is partial is completed first, by all ranks.
int held(lua_State* L) {
    const Tensor tensor = check_tensor(L, 1, "save_checkpoint", "tensor");
    if (!is_laid_out(tensor)) return 0;
    Laid laid = content(tensor);
    if (laid.layout && laid.layout->partial()) laid = in_layout(laid, *laid.layout->complete());
    lua_newtable(L);
    if (!laid.layout) {
        lua_createtable(L, 0, 1);
        push(L, laid.pieces[0]);
        lua_setfield(L, -2, "tensor");
        lua_rawseti(L, -2, 1);
        return 1;
    }
    const Distribution& layout = *laid.layout;
    const Mesh& mesh = layout.mesh();
    const std::vector<int64_t> positions = held_positions(mesh);
    for (size_t i = 0; i < positions.size(); ++i) {
        const Region region = layout.piece(laid.shape, positions[i]);
        Shape offsets;
        for (const Interval& interval : region) offsets.push_back(interval.begin);
        lua_createtable(L, 0, 8);
        push(L, laid.pieces[i]);
        lua_setfield(L, -2, "tensor");
        set_field(L, "rank", mesh.rank(positions[i]));
        set_field(L, "shape", laid.shape);
        set_field(L, "offsets", offsets);
        set_field(L, "sizes", shape_of(region));
        set_field(L, "replica", mesh.place_in_group(positions[i], layout.replicated_axes()));
        set_field(L, "replicas", mesh.size_of(layout.replicated_axes()));
        set_field(L, "mesh", std::string_view(mesh.text()));
        set_field(L, "layout", std::string_view(layout.text(laid.dtype, laid.shape)));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i + 1));
    }
    return 1;
}

// fill(shards, name, tensor [, check]): gives a laid-out tensor the elements of a file, each piece its own. False for
// other tensors.
int fill(lua_State* L) {
    const Shards& shards = shards_at(L);
    const std::string name = text_at(L, 2);
    const Tensor tensor = check_tensor(L, 3, "load_checkpoint", name);
    lua_pushboolean(L, is_laid_out(tensor));
    if (!is_laid_out(tensor)) return 1;
    const auto check = lua_isnoneornil(L, 4) || lua_toboolean(L, 4) ? Shards::Check::sums : Shards::Check::nothing;
    Laid laid = content(tensor);
    const Shards::Whole& saved = shards.at(name);
    if (saved.dtype != laid.dtype || saved.shape != laid.shape)
        throw shape_error("load_checkpoint",
                          str(name, " is ", name_of(saved.dtype), " ", saved.shape, " in the checkpoint and ",
                              name_of(laid.dtype), " ", laid.shape, " in the network"));
    if (laid.layout && laid.layout->partial()) laid.layout = laid.layout->complete();
    laid.pieces.clear();
    if (!laid.layout) {
        laid.pieces.push_back(shards.read(name, whole(laid.shape), check));
    } else {
        for (int64_t position : held_positions(laid.layout->mesh()))
            laid.pieces.push_back(shards.read(name, laid.layout->piece(laid.shape, position), check));
    }
    replace_content(tensor, std::move(laid));
    return 1;
}

// sum(text): its CRC-32C, as eight digits.
int sum(lua_State* L) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", crc32c(text_at(L, 1)));
    push(L, std::string_view(digits));
    return 1;
}

constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {{"open", protect<open_files>},
                                                                {"files", protect<list_files>},
                                                                {"names", protect<names>},
                                                                {"tensor", protect<describe_tensor>},
                                                                {"read", protect<read_tensor>},
                                                                {"missing", protect<missing>},
                                                                {"verify", protect<verify>},
                                                                {"bytes_read", protect<bytes_read>},
                                                                {"write", protect<write_file_of_pieces>},
                                                                {"writer_of", protect<writer>},
                                                                {"name_of", protect<name_of_file>},
                                                                {"sum", protect<sum>},
                                                                {"place", protect<place>},
                                                                {"held", protect<held>},
                                                                {"fill", protect<fill>}};

}  // namespace

int open_shards(lua_State* L) {
    make_handle_type(L, kShards, protect<release_handle<ShardsPtr>>);
    lua_newtable(L);
    for (auto [name, function] : kFunctions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
