// The words of errors in the machine's program, which are those of Lua, and the user's lines in them.
#include <algorithm>
#include <utility>

#include "interpreter/host/lua_host.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "jit/frontend/ast.h"

namespace lunaria {

LuaHost::At::At(LuaHost& host, lua_State* L, const vm::Machine* machine, const ir::Span* const* span) : host_(host) {
    lua_Debug caller;
    const bool known = lua_getstack(L, 0, &caller) != 0;
    host.places_.push_back({known ? caller.i_ci : nullptr, machine, span});
}

std::string LuaHost::innermost_place() const { return place_of(innermost_call()); }

std::string LuaHost::place_of(const void* call) const {
    const auto found = std::find_if(places_.rbegin(), places_.rend(), [&](const Place& p) { return p.call == call; });
    if (found == places_.rend()) return {};
    if (found->machine) return found->machine->here();
    return found->span && *found->span ? ir::place_text(**found->span) : std::string();
}

// The line of the function `level` calls further out than the caller of the machine.
std::string LuaHost::outer_place(size_t level) {
    lua_Debug frame;
    bool below = false, stood_for = false;
    for (int at = 0; lua_getstack(L, at, &frame); ++at) {
        lua_getinfo(L, "Sln", &frame);
        if (frame.i_ci == innermost_call()) {
            below = true;
            stood_for = is_entry_call(frame);
            continue;
        }
        if (!below || std::exchange(stood_for, false)) continue;
        if (std::string_view(frame.source, frame.srclen).starts_with(kLibraryChunks)) continue;
        if (level-- == 0) return frame.currentline > 0 ? str(frame.short_src, ":", frame.currentline) : std::string();
    }
    return {};
}

void LuaHost::complete_message(const Value& f, const std::string& place, bool method) {
    if (lua_type(L, -1) != LUA_TSTRING || place.empty()) return;
    push(L, f);
    const bool c = lua_iscfunction(L, -1);
    lua_pop(L, 1);
    if (!c) return;
    std::string message = lua_tostring(L, -1);
    // Errors of Lua's own operations inside a C function have no line in Lua either.
    if (message.starts_with("attempt to ")) return;
    const size_t colon = message.find(':');
    if (colon != std::string::npos && colon + 1 < message.size() && message[colon + 1] >= '0' &&
        message[colon + 1] <= '9')
        return;
    // Lua names the function as the call does, without its library.
    const size_t name = message.starts_with("bad argument #") ? message.find(" to '") : std::string::npos;
    if (name != std::string::npos) {
        const size_t dot = message.find('.', name), end = message.find('\'', name + 5);
        if (dot < end) message.erase(name + 5, dot + 1 - (name + 5));
        constexpr size_t kNumber = std::string_view("bad argument #").size();
        const int number = std::stoi(message.substr(kNumber, 9)) - 1;
        if (method && number == 0)
            message.replace(0, message.find(" to '") + 4, "calling").replace(message.rfind(" ("), 2, " on bad self (");
        else if (method)
            message.replace(kNumber, message.find(' ', kNumber) - kNumber, std::to_string(number));
    }
    lua_pop(L, 1);
    lunaria::push(L, std::string_view(place + ": " + message));
}

namespace {

// Whether the node is the operation or was made from it in a derivative.
bool comes_from(const ir::Node& node, const ir::Node& operation) {
    if (&node == &operation) return true;
    if (!node.span.chunk || node.span.chunk != operation.span.chunk || node.span.line != operation.span.line ||
        node.span.column != operation.span.column)
        return false;
    const lua::Facts &facts = lua::facts(*node.op), &of_operation = lua::facts(*operation.op);
    if (!facts.ordered) return false;
    const bool same_access = facts.access == of_operation.access && facts.access != lua::Access::none;
    if (same_access && facts.access == lua::Access::reads_field) {
        // a.b.c consists of two field accesses at one place.
        const Value &key = node.args.back(), &other = operation.args.back();
        return key.kind() != Value::Kind::string || other.kind() != Value::Kind::string ||
               key.string() == other.string();
    }
    static const Op& arithmetic = lua::primitive("j_arith");
    return same_access || (facts.calls && of_operation.calls) || node.op == &arithmetic;
}

}  // namespace

std::string LuaHost::operand_name(bool second) const {
    const ir::Node* node = running_->node();
    if (!node || !node->op) return {};
    std::string found;
    for (const auto& [function, info] : infos_) {
        // Variables of Lunaria's own Lua mean nothing to the user.
        if (info->chunk->name().starts_with("lunaria:")) continue;
        for (const lower::Operation& o : info->operations) {
            const lua::Expr* e = second ? o.second : o.first;
            const bool iterates = !o.first && !second;
            if (!(e || iterates) || !comes_from(*node, *o.node)) continue;
            const auto* method = iterates ? nullptr : e->get_if<lua::MethodCall>();
            const std::string name = iterates                        ? "for iterator 'for iterator'"
                                     : !method                       ? lower::name_of(*e)
                                     : lua::facts(*o.node->op).calls ? str("method '", method->name, "'")
                                                                     : std::string();
            if (o.node == node) return name.empty() ? name : str(" (", name, ")");
            // Two operations at one place cannot be told apart.
            if (!found.empty() && found != name) return {};
            found = name;
        }
    }
    return found.empty() ? found : str(" (", found, ")");
}

void LuaHost::operand_error(std::string_view what, const Value& v, bool second) {
    // An operator calls its metamethod, which is no variable.
    const ir::Node* node = running_->node();
    const bool named = what != "call" || (node && lua::facts(node->op).calls);
    throw Error(ErrorKind::argument, "",
                str("attempt to ", what, " a ", type_text(v), " value", named ? operand_name(second) : std::string()));
}

}  // namespace lunaria
