// The module "lunaria.steps" behind lunaria/dataset/vision, text and transforms.
#include "core/data/audio/sound.h"
#include "core/data/text/pieces.h"
#include "core/data/text/words.h"
#include "core/data/transforms/step.h"
#include "core/data/vision/decode.h"
#include "core/io/file.h"
#include "core/io/png.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

template <class Take>
void each_item(lua_State* L, int index, const Take& take) {
    if (lua_isnoneornil(L, index)) return;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        take();
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

// make(kind, where, numbers, texts, tensors, parts, shared)
int make_step(lua_State* L) {
    transforms::Arguments a;
    const std::string kind = text_at(L, 1);
    a.where = text_at(L, 2);
    each_item(L, 3, [&] { a.numbers.push_back(luaL_checknumber(L, -1)); });
    each_item(L, 4, [&] { a.texts.push_back(text_at(L, -1)); });
    each_item(L, 5, [&] { a.tensors.push_back(check_tensor(L, lua_gettop(L), a.where, "tensor").copy()); });
    each_item(L, 6, [&] { a.parts.push_back(transform_at(L, -1)); });
    if (!lua_isnoneornil(L, 7))
        a.shared = handle_at<SharedObject>(L, 7, kind == "sentence_pieces" ? kPiecesHandle : kWordsHandle);
    push_transform(L, transforms::make(kind, std::move(a)));
    return 1;
}

Tensor bytes_tensor(std::string_view bytes) {
    const Tensor t = Tensor::empty(DType::u8, {static_cast<int64_t>(bytes.size())});
    std::copy_n(bytes.data(), bytes.size(), t.data<char>());
    return t;
}

// The bytes of a text, or of a tensor of them.
std::string_view bytes_at(lua_State* L, int index, const std::string& where, Tensor& kept) {
    if (const Tensor* t = tensor_at(L, index)) {
        if (t->dtype() != DType::u8 || t->rank() != 1)
            throw argument_error(where, str("the bytes of a file are expected, got ", describe(L, index)));
        kept = t->contiguous().to_host();
        return {kept.data<char>(), static_cast<size_t>(kept.size())};
    }
    if (lua_type(L, index) != LUA_TSTRING)
        throw argument_error(where, str("the bytes of a file are expected, got ", describe(L, index)));
    size_t size = 0;
    const char* text = lua_tolstring(L, index, &size);
    return {text, size};
}

// words(list, numbers)
int words(lua_State* L) {
    const std::vector<std::string> list = names_at(L, 1);
    const std::vector<int64_t> numbers = integers_at(L, 2, "Vocab", "numbers");
    if (numbers.size() != list.size()) throw argument_error("Vocab", "words without numbers");
    auto made = std::make_shared<text::Words>();
    for (size_t i = 0; i < list.size(); ++i) made->add(list[i], numbers[i]);
    push_handle(L, SharedObject(std::move(made)), kWordsHandle);
    return 1;
}

// pieces(where, model): the model, and its number of pieces
int pieces(lua_State* L) {
    const auto model = text::Pieces::load(text_at(L, 1), text_at(L, 2));
    push_handle(L, SharedObject(model), kPiecesHandle);
    lua_pushinteger(L, static_cast<lua_Integer>(model->size()));
    return 2;
}

// train(where, texts, size, coverage, kind, options): the bytes of a model
int train(lua_State* L) {
    const text::PieceTraining training{static_cast<int>(least_at(L, 3, 1)), luaL_checknumber(L, 4), text_at(L, 5),
                                       names_at(L, 6)};
    push(L, std::string_view(text::train_pieces(text_at(L, 1), names_at(L, 2), training)));
    return 1;
}

// decode(where, bytes, mode, turned)
int decode(lua_State* L) {
    const std::string where = text_at(L, 1);
    Tensor kept;
    const auto mode = static_cast<vision::ReadMode>(luaL_checkinteger(L, 3));
    push(L, vision::decode(where, bytes_at(L, 2, where, kept), mode, lua_toboolean(L, 4)));
    return 1;
}

// size(where, bytes): height, width, channels
int size(lua_State* L) {
    const std::string where = text_at(L, 1);
    Tensor kept;
    const vision::Extent e = vision::picture_size(where, bytes_at(L, 2, where, kept));
    lua_pushinteger(L, e.height);
    lua_pushinteger(L, e.width);
    lua_pushinteger(L, e.channels);
    return 3;
}

// sound(where, bytes, whole, cut): samples, rate, bits
int sound(lua_State* L) {
    const std::string where = text_at(L, 1);
    Tensor kept;
    const audio::Sound s =
        audio::read_sound(where, bytes_at(L, 2, where, kept), lua_toboolean(L, 3), lua_toboolean(L, 4));
    push(L, s.samples);
    lua_pushinteger(L, s.rate);
    lua_pushinteger(L, s.bits);
    return 3;
}

int read(lua_State* L) {
    push(L, bytes_tensor(read_file(text_at(L, 1), kMostBytes)));
    return 1;
}

// write(path, bytes)
int write(lua_State* L) {
    Tensor kept;
    write_file(text_at(L, 1), bytes_at(L, 2, "write_file", kept));
    return 0;
}

// jpeg(where, image, quality)
int jpeg(lua_State* L) {
    const std::string where = text_at(L, 1);
    const Tensor image = vision::image_of(Value(check_tensor(L, 2, where, "image")), where);
    push(L, bytes_tensor(vision::jpeg_bytes(where, image, static_cast<int>(luaL_checkinteger(L, 3)))));
    return 1;
}

// png(where, image)
int png(lua_State* L) {
    const std::string where = text_at(L, 1);
    const Tensor image = vision::image_of(Value(check_tensor(L, 2, where, "image")), where);
    if (image.dtype() != DType::u8 || image.rank() > 3)
        throw value_error(where, str("the image must be uint8 (height, width, channels), got ", describe(L, 2)));
    const vision::Extent e = vision::extent(image);
    push(L, bytes_tensor(png_bytes({image.data<char>(), image.nbytes()}, e.width, e.height, e.channels)));
    return 1;
}

}  // namespace

int open_steps(lua_State* L) {
    make_handle_type(L, kWordsHandle, protect<release_handle<SharedObject>>);
    make_handle_type(L, kPiecesHandle, protect<release_handle<SharedObject>>);
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"make", protect<make_step>},
                                  {"words", protect<words>},
                                  {"pieces", protect<pieces>},
                                  {"train", protect<train>},
                                  {"decode", protect<decode>},
                                  {"size", protect<size>},
                                  {"sound", protect<sound>},
                                  {"read", protect<read>},
                                  {"write", protect<write>},
                                  {"jpeg", protect<jpeg>},
                                  {"png", protect<png>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
