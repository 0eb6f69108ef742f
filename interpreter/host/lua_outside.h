// Lua as the outside of a call's record: the interface through which the record reaches the program.
#pragma once

#include "interpreter/host/kept.h"
#include "interpreter/host/lua_host.h"
#include "jit/trace/outside.h"

namespace lunaria {

class LuaOutside final : public trace::Outside {
  public:
    // The stack of the running C function: the compiled function at 1, the table of the values that it keeps, the
    // arguments.
    struct Places {
        int kept, first, count;
    };
    LuaOutside(LuaHost& host, Places places, Kept& kept);

    trace::Answer ask(const trace::Question& question) override;
    bool hold(const trace::Guards& guards) override;
    bool call(const Value& f, std::span<const Value> args, const trace::Step& step, vm::Values& results,
              Value& error) override;
    Value make_table(std::span<const Value> recipe) override;
    void pour(const Value& from, const Value& to) override;
    void set_upvalue(const Value& function, int position, const Value& v) override;
    Value handle_of(const Value& tensor) override;
    Type type_of(const Value& v) override;
    Native native(const Value& f) override;
    bool is_in_derivatives(const Value& f) override { return host_.is_in_derivatives(f); }
    Value target(const Value& f) override { return host_.jit_target(f); }
    Value any_function() override;
    Value function() override;
    const void* variable(const Value& function, int position) override;
    trace::CapturedNumbers& captured_numbers() override;
    void run(vm::Machine& machine, const std::function<void()>& body) override;
    vm::Host::Protected protect(const std::function<void()>& body) override;
    void keep(trace::Tree& tree) override { kept_.keep(host_.lua(), places_.kept, tree); }
    Value lasting(const Value& v) override;
    void make_room() override;

  private:
    void push(lua_State* L, const trace::Question& question);
    trace::Answer answer_at(lua_State* L, int index, const trace::Question& question);

    LuaHost& host_;
    const Places places_;
    Kept& kept_;
    int listed_ = LUA_NOREF;  // in the registry: the arguments as a table, for another C function
    LuaHost::At at_;
};

}  // namespace lunaria
