#include "interpreter/bindings/draft.h"

#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

constexpr const char* kDraft = "lunaria.draft";
using DraftPtr = std::unique_ptr<FileSink>;  // null: it was committed or closed

// draft(path): a file that takes the place of path in commit(); without a path: a temporary file.
int draft(lua_State* L) {
    if (lua_isnoneornil(L, 1))
        push_handle<DraftPtr>(L, open_temporary(), kDraft);
    else
        push_handle<DraftPtr>(L, std::make_unique<FileSink>(path_at(L, 1, "draft")), kDraft);
    return 1;
}

int commit(lua_State* L) {
    draft_at(L, 1, "draft:commit").commit();
    handle_at<DraftPtr>(L, 1, kDraft).reset();
    return 0;
}

int close_draft(lua_State* L) {
    if (auto* place = static_cast<DraftPtr*>(luaL_testudata(L, 1, kDraft))) place->reset();
    return 0;
}

// draft.path, draft:commit()
int draft_index(lua_State* L) {
    const std::string_view key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (key == "path")
        push(L, std::string_view(draft_at(L, 1, "draft").draft()));
    else if (key == "commit")
        lua_pushcfunction(L, protect<commit>);
    else
        throw argument_error("draft", str("a draft has path and commit, not ", describe(L, 2)));
    return 1;
}

}  // namespace

FileSink& draft_at(lua_State* L, int index, std::string_view where) {
    auto* place = static_cast<DraftPtr*>(luaL_testudata(L, index, kDraft));
    if (!place) throw argument_error(where, str("a draft is expected, got ", describe(L, index)));
    if (!*place) throw argument_error(where, "the draft is at its end: it was put in its place or closed");
    return **place;
}

void bind_draft(lua_State* L) {
    make_handle_type(L, kDraft, protect<release_handle<DraftPtr>>);
    luaL_getmetatable(L, kDraft);
    lua_pushcfunction(L, protect<draft_index>);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, protect<close_draft>);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
    lua_pushcfunction(L, protect<draft>);
    lua_setfield(L, -2, "draft");
}

}  // namespace lunaria
