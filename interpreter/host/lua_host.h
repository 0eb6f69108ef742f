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
#include "interpreter/library/lua_arguments.h"
#include "interpreter/loader/loader.h"
#include "jit/lower/lower.h"
#include "jit/vm/machine.h"
#include "jit/vm/tensor_parts.h"

namespace lunaria {

class LuaHost final : public vm::Host {
  public:
    explicit LuaHost(lua_State* main);
    ~LuaHost() override;

    // The host of a Lua state; made at the first use.
    static LuaHost& of(lua_State* L);
    // Whether the C function is the one in which the machine's pcall runs.
    static bool is_protection(lua_CFunction f);
    // Destroys the host, if there is one, before the state is closed.
    static void end(lua_State* L);
    // The same as of(); null if there is none yet.
    static LuaHost* existing(lua_State* L);
    // The text of the function of the machine that is at the index as a function of Lua; null: another function.
    static const ir::Graph* text_of(lua_State* state, int index);

    vm::Machine& machine() { return machine_; }
    // While it lives, the work of the running C function of L counts as done by the machine's current line of the
    // user's text, or by *span.
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
    // While it lives, another machine with this host runs.
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
    // Whether a machine with this host runs.
    bool runs() const { return running_->is_running() || machine_.is_running(); }
    // Adds the caller's line to the error message on the stack, as Lua does for a C function called by a Lua function.
    // `place`: that line; empty: pcall called the function.
    // `method`: f was called as object:name().
    void complete_message(const Value& f, const std::string& place, bool method);
    // Calls f in the machine from the Lua function that runs in L.
    vm::Values run(lua_State* L, const Value& f, vm::Values args);
    // The entries from Lua into the machine, the innermost last: the C function, by Lua's record of the call, and the
    // number of frames at that time.
    struct Entry {
        lua_State* thread;
        const void* call;
        size_t frames;
    };
    const std::vector<Entry>& entries() const { return entries_; }
    // While it lives, the host works in this Lua thread.
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
    // Frees objects of the machine and of Lua that refer only to each other, by a full collection of Lua's garbage.
    // False: Lua refers to no objects of the machine, and nothing was collected.
    bool collect_cycles(lua_State* state);
    // The value at the index as an object.
    Value reference(lua_State* L, int index);
    // Pushes a value; a tensor that Lua already has is pushed as the same object.
    void push(lua_State* L, const Value& v);
    // The same, with a new object for a tensor, to which there is no other reference.
    void push_briefly(const Value& v);
    Handles& handles() { return handles_; }
    // The machine's coroutine of a Lua thread; nil: the value is a coroutine of Lua or no thread.
    Value coroutine_at(lua_State* L, int index);
    // The machine's value in a userdata; null: the value is something else.
    const Value* boxed(lua_State* state, int index) { return boxes_.at(state, index); }
    // The closure of the machine that is at the index as a function of Lua; nil: another function.
    Value closure_at(lua_State* state, int index);
    StandIns& stand_ins() { return stand_ins_; }

    // In derivatives the machine runs this function of the IR instead of the C function at `index`, for arguments of
    // these kinds (see LuaArguments; "": any).
    using Intrinsic = std::variant<vm::Prelude, vm::OperatorFunction>;
    void set_intrinsic(lua_State* L, int index, Intrinsic function, std::string_view kinds = "");
    // The function behind a compiled function (ms.jit); any other value itself.
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
        std::shared_ptr<ir::Graph> stopping;  // the same with stop points, made at the first request
        const lua::Function* function = nullptr;
        std::string problem;                       // the reason why there is no graph
        std::vector<lower::Operation> operations;  // of both graphs
        std::vector<bool> cells;                   // per upvalue of the graph
        std::vector<int> positions;                // the upvalues' positions in Lua's list
        size_t nodes = 0;                          // of the graph; counts for the limit on kept graphs
        uint64_t used = 0;                         // the number of known functions at the last request
    };
    std::shared_ptr<FunctionInfo> info_of(int index);
    // Forgets functions that Lua no longer has, those with the oldest requests first, until the kept graphs, which
    // serve functions that are made again, are within their limit.
    void forget_functions();
    const std::shared_ptr<ir::Graph>& graph_of(FunctionInfo& info);
    void capture(const Value& f, int index, const FunctionInfo& info, vm::Values& captures);
    // Takes the tensor out of a handle of push_briefly(), since Lua's collector would keep it for long.
    void forget(int index);
    void push_thread(lua_State* L, const Value& v);
    // "table", "tensor": the name of a type in Lua's messages.
    std::string type_text(const Value& v);
    vm::Field follow_chain(const Value& object, const Value& key, const char* event);
    // `second`: v is the second operand of the machine's instruction.
    [[noreturn]] void operand_error(std::string_view what, const Value& v, bool second = false);
    // " (local 'a')" for an operand of the machine's instruction, if its name is known.
    std::string operand_name(bool second) const;

    lua_State* main_;
    lua_State* L;  // the running thread
    vm::Machine machine_;
    vm::Machine* running_ = &machine_;
    std::vector<Entry> entries_;
    struct Place {
        const void* call;  // Lua's record of the call
        const vm::Machine* machine;
        const ir::Span* const* span;
    };
    std::vector<Place> places_;
    std::unordered_map<const lua::Function*, std::shared_ptr<FunctionInfo>> infos_;
    uint64_t infos_made_ = 0;
    size_t new_nodes_ = 0,
           settled_nodes_ = 0;  // nodes in use after the last full collection
    int info_cache_ = LUA_NOREF;
    int threads_ = LUA_NOREF;  // a table from threads that stand for coroutines of the machine to their boxes
    Boxes boxes_;
    Handles handles_;
    StandIns stand_ins_;
    vm::TensorParts parts_;
    FieldNames names_{*this};
    std::unordered_map<lua_CFunction, Intrinsic> intrinsics_;
    LuaArguments arguments_;
    lua_CFunction c_function(const Value& f);
    Index index_of(const Value& key);
    lua_CFunction gives_keys_ = nullptr;
    std::unordered_map<const Op*, Value> operators_, number_functions_;
};

}  // namespace lunaria
