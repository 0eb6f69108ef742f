// The module behind lunaria/lite/words/: tokenizers and streams of their texts.
#include "core/data/text/tokenizer/tokenizer.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using TokenizerHandle = std::shared_ptr<const text::Tokenizer>;
using StreamHandle = std::unique_ptr<text::TokenStream>;
constexpr const char* kTokenizerHandle = "lunaria.tokenizer";
constexpr const char* kStreamHandle = "lunaria.tokenizer.stream";

std::string_view input_text(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

const text::Tokenizer& tokenizer_at(lua_State* L) { return *handle_at<TokenizerHandle>(L, 1, kTokenizerHandle); }

// load(text of a tokenizer.json)
int load(lua_State* L) {
    push_handle<TokenizerHandle>(L, std::make_shared<const text::Tokenizer>(input_text(L, 1)), kTokenizerHandle);
    return 1;
}

template <class List, class Push>
void push_word_list(lua_State* L, const List& list, Push&& push_one) {
    lua_createtable(L, static_cast<int>(list.size()), 0);
    lua_Integer i = 0;
    for (const auto& one : list) {
        push_one(one);
        lua_rawseti(L, -2, ++i);
    }
}
template <class List, class Push>
void set_list(lua_State* L, const char* name, const List& list, Push&& push_one) {
    push_word_list(L, list, push_one);
    lua_setfield(L, -2, name);
}

// Of the arguments: tokenizer, text, second or nil, add_special.
text::Encoding encoded(lua_State* L) {
    std::string_view second;
    if (!lua_isnil(L, 3)) second = input_text(L, 3);
    return tokenizer_at(L).encode(input_text(L, 2), lua_isnil(L, 3) ? nullptr : &second, lua_toboolean(L, 4));
}

// encode(...) -> { ids, tokens, begins, ends, type_ids, special }
int encode(lua_State* L) {
    const text::Encoding made = encoded(L);
    lua_createtable(L, 0, 6);
    const auto integer = [&](int value) { lua_pushinteger(L, value); };
    set_list(L, "ids", made.numbers, integer);
    set_list(L, "type_ids", made.types, integer);
    set_list(L, "tokens", made.tokens, [&](const std::string& token) { push(L, std::string_view(token)); });
    set_list(L, "begins", made.places, [&](text::Place place) { lua_pushinteger(L, place.begin); });
    set_list(L, "ends", made.places, [&](text::Place place) { lua_pushinteger(L, place.end); });
    set_list(L, "special", made.special, [&](bool value) { lua_pushboolean(L, value); });
    return 1;
}

// encode_ids(...) -> ids
int encode_ids(lua_State* L) {
    const text::Encoding made = encoded(L);
    push_word_list(L, made.numbers, [&](int id) { lua_pushinteger(L, id); });
    return 1;
}

// decode(tokenizer, numbers, skip_special)
int decode_words(lua_State* L) {
    std::vector<int> numbers;
    for (const int64_t number : integers_at(L, 2, "Tokenizer:decode", "ids"))
        numbers.push_back(number < 0 || number > INT32_MAX ? -1 : static_cast<int>(number));
    push(L, std::string_view(tokenizer_at(L).decode(numbers, lua_toboolean(L, 3))));
    return 1;
}

// token(tokenizer, number) -> text, is_special; nil where there is none
int token(lua_State* L) {
    const lua_Integer number = luaL_checkinteger(L, 2);
    const std::string* text =
        number < 0 || number > INT32_MAX ? nullptr : tokenizer_at(L).token(static_cast<int>(number));
    if (!text) return 0;
    push(L, std::string_view(*text));
    lua_pushboolean(L, tokenizer_at(L).is_special(static_cast<int>(number)));
    return 2;
}

// number(tokenizer, token); nil where there is none
int number(lua_State* L) {
    const int found = tokenizer_at(L).number(input_text(L, 2));
    if (found < 0) return 0;
    lua_pushinteger(L, found);
    return 1;
}

int words_size(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(tokenizer_at(L).size()));
    return 1;
}

// stream(tokenizer, skip_special)
int stream(lua_State* L) {
    const TokenizerHandle& tokenizer = handle_at<TokenizerHandle>(L, 1, kTokenizerHandle);
    push_handle<StreamHandle>(L, std::make_unique<text::TokenStream>(tokenizer, lua_toboolean(L, 2)), kStreamHandle);
    return 1;
}

int next_text(lua_State* L) {
    const StreamHandle& stream = handle_at<StreamHandle>(L, 1, kStreamHandle);
    const lua_Integer number = luaL_checkinteger(L, 2);
    push(L, std::string_view(stream->next(number < 0 || number > INT32_MAX ? -1 : static_cast<int>(number))));
    return 1;
}

int rest(lua_State* L) {
    push(L, std::string_view(handle_at<StreamHandle>(L, 1, kStreamHandle)->rest()));
    return 1;
}

template <std::string (*Change)(std::string_view, std::string_view)>
int with_case(lua_State* L) {
    push(L, std::string_view(Change("chat_template", input_text(L, 1))));
    return 1;
}

}  // namespace

int open_words(lua_State* L) {
    make_handle_type(L, kTokenizerHandle, protect<release_handle<TokenizerHandle>>);
    make_handle_type(L, kStreamHandle, protect<release_handle<StreamHandle>>);
    constexpr luaL_Reg functions[] = {{"load", protect<load>},
                                      {"encode", protect<encode>},
                                      {"encode_ids", protect<encode_ids>},
                                      {"decode", protect<decode_words>},
                                      {"token", protect<token>},
                                      {"number", protect<number>},
                                      {"size", protect<words_size>},
                                      {"stream", protect<stream>},
                                      {"upper", protect<with_case<text::upper>>},
                                      {"lower", protect<with_case<text::lower>>},
                                      {"next", protect<next_text>},
                                      {"rest", protect<rest>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
