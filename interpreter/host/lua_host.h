// Lua as the host of the virtual machine: its tables, functions and metamethods behind the machine's interface, and the
// machine's closures as Lua functions.
#pragma once

#include <lua.hpp>
#include <memory>
#include <unordered_map>
#include <variant>

#include "interpreter/host/boxes.h"
#include "interpreter/host/field_names.h"
#include "interpreter/host/handles.h"
#include "interpreter/host/stand_ins.h"
#include "interpreter/host/tensor_parts.h"
#include "interpreter/library/lua_arguments.h"
#include "interpreter/loader/loader.h"
#include "jit/lower/lower.h"
#include "jit/vm/machine.h"

namespace lunaria {

class LuaHost final : public vm::Host {
  public:
    explicit LuaHost(lua_State* main);
    ~LuaHost() override;

    // The host of a Lua state; made at the first use.
    static LuaHost& of(lua_State* L);
    // Whether the C function is the one that the machine's pcall runs in.
    static bool is_protection(lua_CFunction f);
    // Destroys it, if it was made: the state is about to be closed.
    static void end(lua_State* L);
    // The same as of(), null when it was not made yet.
    static LuaHost* existing(lua_State* L);

    vm::Machine& machine() { return machine_; }
    // For as long as it lives, what the running C function of L does is done by the user's line that the machine is
    // at, or by *span.
    class At {
      public:
        At(LuaHost& host, lua_State* L, const vm::Machine* machine, const ir::Span* const* span);
        ~At() { host_.places_.pop_back(); }
        At(const At&) = delete;
        At& operator=(const At&) = delete;

      private:
        LuaHost& host_;
    };
    // The C function of the innermost At, and its line (may be empty).
    const void* innermost_call() const { return places_.empty() ? nullptr : places_.back().call; }
    std::string innermost_place() const;
    // The line of any C function's innermost At; empty where it has none.
    std::string place_of(const void* call) const;
    // Another machine that has this host runs for as long as it lives.
    class Running {
      public:
        Running(LuaHost& host, vm::Machine& m)
            : host_(host), before_(std::exchange(host.running_, &m)), at_(host, host.L, &m, nullptr) {}
        ~Running() { host_.running_ = before_; }
        Running(const Running&) = delete;
        Running& operator=(const Running&) = delete;

      private:
        LuaHost& host_;
        vm::Machine* before_;
        At at_;
    };
    lua_State* lua() const { return L; }
    // Whether a machine runs: this one or another that has this host.
    bool runs() const { return running_->is_running() || machine_.is_running(); }
    // Adds the line that called to the error message on the stack, as Lua does for C functions that a Lua function
    // calls. `place`: that line; empty: pcall itself called.
    // `method`: f was called as object:name().
    void complete_message(const Value& f, const std::string& place, bool method);
    // Calls f in the machine from the Lua function that runs in L.
    vm::Values run(lua_State* L, const Value& f, vm::Values args);
    // Where Lua called the machine: the C function, by Lua's record of the call, and how many frames there were. The
    // innermost is the last.
    struct Entry {
        lua_State* thread;
        const void* call;
        size_t frames;
    };
    const std::vector<Entry>& entries() const { return entries_; }
    // What the host does runs in this Lua thread for as long as it lives.
    class Thread {
      public:
        Thread(LuaHost& host, lua_State* L) : host_(host), before_(std::exchange(host.L, L)) {}
        ~Thread() { host_.L = before_; }
        Thread(const Thread&) = delete;
        Thread& operator=(const Thread&) = delete;

      private:
        LuaHost& host_;
        lua_State* before_;
    };
    Value to_value(lua_State* L, int index);
    // Frees objects of the machine and of Lua that only refer to each other: a full collection of Lua's garbage. False:
    // there are none of the machine's objects in Lua, and nothing was collected.
    bool collect_cycles(lua_State* state) { return boxes_.collect_cycles(state); }
    // Whatever is at the index as an object.
    Value reference(lua_State* L, int index);
    // A tensor that Lua has is the object that Lua has.
    void push(lua_State* L, const Value& v);
    // The same, a tensor as an object that nobody else sees.
    void push_briefly(const Value& v);
    // The machine's coroutine that a thread stands for; nil: it is one of Lua's own, or no thread.
    Value coroutine_at(lua_State* L, int index);
    // The machine's own value that a userdata is; null: it is something else.
    const Value* boxed(lua_State* state, int index) { return boxes_.at(state, index); }
    StandIns& stand_ins() { return stand_ins_; }

    // The C function at `index` is run as this function of the IR, with arguments of these kinds (see LuaArguments;
    // "": any), where a derivative is computed.
    using Intrinsic = std::variant<vm::Prelude, vm::OperatorFunction>;
    void set_intrinsic(lua_State* L, int index, Intrinsic function, std::string_view kinds = "");
    // The function that a compiled function (ms.jit) stands for; any other value itself.
    Value jit_target(const Value& f);
    // A function of plain numbers, see jit/number.h.
    static void push_number_function(lua_State* L, const Op& primitive);

    // The graph of the Lua function at `index`, or of its derivative, as text.
    std::string graph_text(lua_State* L, int index, int order);

    vm::Callee resolve(const Value& f) override;
    const Op* operator_in(const Value& f) override;
    vm::Field find_field(const Value& object, const Value& key) override;
    vm::Field find_new_field(const Value& object, const Value& key) override;
    Value metamethod(const Value& a, const Value& b, std::string_view event) override;
    Value index(const Value& object, const Value& key) override;
    void set_index(const Value& object, const Value& key, const Value& value) override;
    vm::Values call(const Value& f, std::span<const Value> args) override;
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override;
    bool compare(const Op& primitive, const Value& a, const Value& b) override;
    Value concat(const Value& a, const Value& b) override;
    Value length(const Value& a) override;
    Value new_table(size_t array, size_t fields) override;
    Value raw_get(const Value& table, const Value& key) override;
    void raw_set(const Value& table, const Value& key, const Value& value) override;
    bool is_table(const Value& v) override;
    bool is_function(const Value& v) override;
    std::string describe(const Value& v) override;
    Value resumed_by(const Value& f, std::span<const Value> args) override;
    bool reaches(const Value& coroutine, const vm::Context& context,
                 const std::function<bool(const Value&)>& follows) override;
    std::string why_opaque(const Value& f) override;
    bool is_harmless(const Value& f) override { return stand_ins_.is_harmless(c_function(f)); }
    bool gives_keys(const Value& f) override { return gives_keys_ && c_function(f) == gives_keys_; }
    Value stand_in(const Value& f) override { return stand_ins_.find(f); }
    bool holds_floats(const Value& table) override;
    void set_gives_keys(lua_CFunction f) { gives_keys_ = f; }
    bool is_in_derivatives(const Value& f) { return stand_ins_.is_in_derivatives(c_function(f)); }
    Bound bind(const Op& op, std::span<const Value> args) override;
    Part part_of(const Value& tensor, const Value& key) override;
    bool is_part(const Value& text) override;
    Part put_part(const Value& tensor, const Value& key, const Value& value) override;
    void for_each_table(const Value& table, const std::function<void(const Value&)>& f) override;
    Protected call_protected(const std::function<void()>& body) override;
    [[noreturn]] void raise(const Value& error) override;
    Value open_batch(vm::Host& around, int64_t size) override;
    void poll() override;
    void at_line() override;
    void failed(const Error& e) override;
    std::string outer_place(size_t level) override;

  private:
    friend class LuaReference;
    struct FunctionInfo {
        std::shared_ptr<const lua::Chunk> chunk;
        std::shared_ptr<ir::Graph> graph;
        std::shared_ptr<ir::Graph> stopping;  // the same with stop points, once it was asked for
        const lua::Function* function = nullptr;
        std::string problem;                       // why there is no graph
        std::vector<lower::Operation> operations;  // of both graphs
        std::vector<bool> cells;                   // per upvalue of the graph
        std::vector<int> positions;                // of it in Lua's list
        size_t nodes = 0;                          // of the graph: what keeping it costs
        uint64_t used = 0;                         // when it was asked for last: how many functions were known then
    };
    std::shared_ptr<FunctionInfo> info_of(int index);
    // Forgets functions that no Lua function has any more, those that were not asked for longest first, until what is
    // kept for them in case they are made again is little.
    void forget_functions();
    const std::shared_ptr<ir::Graph>& graph_of(FunctionInfo& info);
    void capture(const Value& f, int index, const FunctionInfo& info, vm::Values& captures);
    // Takes the tensor out of a handle that push_briefly() made, which Lua's collector would keep for long.
    void forget(int index);
    void push_thread(lua_State* L, const Value& v);
    // "table", "tensor": as Lua's own messages name it.
    std::string type_text(const Value& v);
    vm::Field follow_chain(const Value& object, const Value& key, const char* event);
    // `second`: v is the second operand of what the machine does.
    [[noreturn]] void operand_error(std::string_view what, const Value& v, bool second = false);
    // " (local 'a')" of an operand of what the machine does, as far as it is known.
    std::string operand_name(bool second) const;

    lua_State* main_;
    lua_State* L;  // that runs
    vm::Machine machine_;
    vm::Machine* running_ = &machine_;
    std::vector<Entry> entries_;
    struct Place {
        const void* call;  // by Lua's record of it
        const vm::Machine* machine;
        const ir::Span* const* span;
    };
    std::vector<Place> places_;
    std::unordered_map<const lua::Function*, std::shared_ptr<FunctionInfo>> infos_;
    uint64_t infos_made_ = 0;
    size_t new_nodes_ = 0,
           settled_nodes_ = 0;  // of functions: since some were forgotten, in use after a full collection
    int info_cache_ = LUA_NOREF;
    int threads_ = LUA_NOREF;  // that stand for coroutines of the machine, with their boxes
    Boxes boxes_;
    Handles handles_;
    StandIns stand_ins_;
    TensorParts parts_{*this};
    FieldNames names_{*this};
    std::unordered_map<lua_CFunction, Intrinsic> intrinsics_;
    LuaArguments arguments_;
    lua_CFunction c_function(const Value& f);
    lua_CFunction gives_keys_ = nullptr;
    std::unordered_map<const Op*, Value> operators_, number_functions_;
};

}  // namespace lunaria
