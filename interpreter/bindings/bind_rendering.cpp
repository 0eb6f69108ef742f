// The module "lunaria.rendering": functions in C++ for the Lua files that draw.
#include <algorithm>
#include <cstring>

#include "core/io/png.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/display/sixel.h"
#include "interpreter/display/svg_picture.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

std::string_view source_text(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

// png(pixels, width, height, channels): the bytes of a file; pixels are a string or a tensor of uint8.
int png(lua_State* L) {
    const int64_t width = integer_at(L, 2, "png", "width"), height = integer_at(L, 3, "png", "height");
    const int64_t channels = integer_at(L, 4, "png", "channels");
    if (lua_type(L, 1) == LUA_TSTRING) {
        push(L, std::string_view(png_bytes(source_text(L, 1), width, height, channels)));
        return 1;
    }
    const Tensor t = check_tensor(L, 1, "png", "pixels").contiguous().to_host();
    if (t.dtype() != DType::u8) throw dtype_error("png", str("pixels must be of dtype UInt8, got ", describe(L, 1)));
    const std::string_view bytes(reinterpret_cast<const char*>(t.data<uint8_t>()), static_cast<size_t>(t.size()));
    push(L, std::string_view(png_bytes(bytes, width, height, channels)));
    return 1;
}

// base64(bytes): text without line breaks.
int base64(lua_State* L) {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::string_view bytes = source_text(L, 1);
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t word = 0;
        for (size_t k = 0; k < 3; ++k)
            word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (int k = 0; k < 4; ++k) text += kDigits[word >> (18 - 6 * k) & 63];
    }
    if (const size_t rest = bytes.size() % 3) std::fill(text.end() - static_cast<long>(3 - rest), text.end(), '=');
    push(L, std::string_view(text));
    return 1;
}

// has_svg(): whether the two functions below work here.
int has_svg(lua_State* L) {
    lua_pushboolean(L, can_draw_svg());
    return 1;
}

// svg_to_png(svg, scale)
int svg_to_png(lua_State* L) {
    const Picture picture = draw_svg(source_text(L, 1), luaL_optnumber(L, 2, 1));
    push(L, std::string_view(drawing_png_bytes(picture.pixels, picture.width, picture.height)));
    return 1;
}

// svg_to_sixel(svg, scale)
int svg_to_sixel(lua_State* L) {
    push(L, std::string_view(sixel_text(draw_svg(source_text(L, 1), luaL_optnumber(L, 2, 1)))));
    return 1;
}

}  // namespace

int open_rendering(lua_State* L) {
    lua_newtable(L);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"png", protect<png>},
                                  {"base64", protect<base64>},
                                  {"has_svg", protect<has_svg>},
                                  {"svg_to_png", protect<svg_to_png>},
                                  {"svg_to_sixel", protect<svg_to_sixel>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
