#include "interpreter/watchers/batching.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/base/interrupt.h"
#include "core/batching/batching.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "core/random/random.h"
#include "core/tensor/element.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/host/natives.h"
#include "interpreter/protect.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/values.h"
#include "jit/language.h"
#include "jit/trace/recorder.h"
#include "jit/vm/region.h"
#include "jit/vm/watcher.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "vmap";
// After so many operators, stand-ins without references are dropped.
constexpr size_t kSweep = 256;

Error not_for_a_batch(std::string_view why) {
    return state_error(kWhere, str("the samples have to be taken one after the other: ", why));
}
void refuse_effects(const Op& op) {
    if (op.is_ordered())
        throw not_for_a_batch(op.writes() ? "a tensor is written" : "something is exchanged with the outside");
}

class Batcher final : public vm::Region, public Builder {
  public:
    // `around`: the host of the function's caller.
    Batcher(LuaHost& host, vm::Host& around, int64_t size)
        : Region(around),
          host_(host),
          natives_(natives_of(host.lua())),
          size_(size),
          outer_(vm::watcher()),
          around_(dynamic_cast<Batcher*>(outer_)),
          recorder_(around_ ? around_->recorder_ : outer_),
          random_(default_generator().state()) {
        for (const auto& [library, name] : {std::pair("math", "type"), std::pair("lunaria.autodiff", "metamethod")})
            if (lua_CFunction c = function_of(library, name)) looking_.push_back(c);
    }

    Protected attempt(const std::function<void()>& body) override {
        Protected outcome = host_.call_protected(body);
        if (outcome.ok) return outcome;
        undo();
        poll_interrupt();
        if (recorder_) recorder_->pass_on();
        return outcome;
    }
    Value enter(const Value& batched) override { return sample_of(batched); }
    int64_t size() const override { return size_; }
    Value open_batch(vm::Host& host, int64_t size) override { return host_.open_batch(host, size); }

    // Restores the state before the run.
    void undo() const {
        if (drew_) default_generator().set_state(random_);
    }

    // A tensor like one sample of the batch.
    Value sample_of(const Value& batched) {
        if (!batched.is_tensor()) throw not_for_a_batch("an argument is no tensor");
        if (recorder_) recorder_->settled(batched);
        const Tensor& t = batched.tensor();
        Shape shape;
        for (int k = 1; k < t.rank(); ++k) shape.push_back(t.dim(k));
        Tensor& zero = zeros_[static_cast<size_t>(t.dtype())];
        if (!zero) zero = Tensor::zeros(t.dtype(), {});
        Value v(zero.view(shape, Shape(std::vector<int64_t>(static_cast<size_t>(t.rank()) - 1))));
        samples_.insert_or_assign(v.tensor().body(), Sample{v.tensor(), batched});
        return v;
    }
    // The batched tensor of a stand-in; nil: the value stands for itself.
    Value taken(const Value& v) const override {
        if (!v.is_tensor()) return {};
        const auto found = samples_.find(v.tensor().body());
        return found == samples_.end() ? Value() : found->second.batched;
    }

    // Functions of the host.
    vm::Callee resolve(const Value& f) override {
        vm::Callee callee = inner_.resolve(f);
        callee.intrinsic |= callee.kind == vm::Callee::Kind::function;
        return callee;
    }
    const Op* operator_in(const Value& f) override { return inner_.operator_in(f); }
    vm::Values call(const Value& f, std::span<const Value> args) override {
        const Native kind = native(f);
        // Nothing is compiled within a batch, as within a recording.
        if (kind == Native::inside) return {Value(true)};
        const bool known = only_looks(kind, args) || std::ranges::find(looking_, c_function(f)) != looking_.end();
        if (!known) throw not_for_a_batch(str(host_.describe(f), " is called"));
        return inner_.call(f, args);
    }
    Value index(const Value& object, const Value& key) override {
        if (holds_sample(key, 0)) throw not_for_a_batch("an index depends on the sample");
        if (!is_sample(object)) return inner_.index(object, key);
        const Part part = inner_.part_of(object, key);
        if (part.function) {
            std::vector<Value> args = part.args;
            args.insert(args.begin(), object);
            if (recorder_)
                for (const auto& node : part.function->nodes())
                    if (node->kind == ir::NodeKind::constant) recorder_->made(node->constant);
            const Value result = ir::replay(
                *part.function, args,
                [&](const Op& op, const std::vector<Value>& operands) { return run(op, operands); },
                [](const Value& results, size_t i) { return results.items().at(i); });
            return result.is_list() && !result.items().empty() ? result.items()[0] : result;
        }
        Value found = host_.index(object, key);
        if (recorder_ && host_.is_table(found)) found = inner_.index(object, key);
        if (found.is_tensor()) throw not_for_a_batch("part of a tensor is read that is no operator's");
        return found;
    }
    Part part_of(const Value& t, const Value& key) override {
        if (holds_sample(key, 0)) throw not_for_a_batch("an index depends on the sample");
        return inner_.part_of(t, key);
    }
    void set_index(const Value&, const Value&, const Value&) override {
        throw not_for_a_batch("something outside is written");
    }
    Part put_part(const Value&, const Value&, const Value&) override { throw not_for_a_batch("a tensor is written"); }
    Value new_table(size_t array, size_t fields) override {
        Value table = inner_.new_table(array, fields);
        own_.emplace(vm::identity_of(table), table);
        return table;
    }
    void raw_set(const Value& table, const Value& key, const Value& value) override {
        if (!is_own(table)) throw not_for_a_batch("a table from outside is written");
        inner_.raw_set(table, key, value);
    }
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override {
        if (is_sample(a) || is_sample(b)) throw not_for_a_batch("arithmetic of another kind");
        return inner_.arithmetic(primitive, a, b);
    }
    bool compare(const Op& primitive, const Value& a, const Value& b) override {
        const bool by_value = lua::facts(primitive).operation != lua::Operation::equal ||
                              (a.is_tensor() && b.is_tensor() && !a.tensor().same_body(b.tensor()));
        if (by_value && (is_sample(a) || is_sample(b))) throw not_for_a_batch("it decides by a sample's elements");
        return inner_.compare(primitive, a, b);
    }
    Value concat(const Value& a, const Value& b) override {
        if (is_sample(a) || is_sample(b)) throw not_for_a_batch("a sample becomes a text");
        return inner_.concat(a, b);
    }
    Bound bind(const Op& op, std::span<const Value> args) override {
        Bound bound = inner_.bind(op, args);
        // Tables become lists of their tensors, or tensors of their elements.
        for (const Value& v : args)
            if (host_.is_table(v) && holds_sample(v, 0) &&
                count_samples(Value::list({bound.args.begin(), bound.args.end()})) == 0)
                throw not_for_a_batch("a table of samples becomes a tensor");
        return bound;
    }
    [[noreturn]] void raise(const Value& error) override { host_.raise(error); }

    // Functions of the machine's watcher.
    bool only_runs() const override { return !recorder_ && contexts.empty(); }
    bool step(vm::Machine& m, const vm::Instr& i) override {
        if (recorder_) settle(m, i);
        if (!i.op || !i.op->belongs_to(lua::language())) return watched(m, i);
        switch (kind_of(*i.op)) {
            case Kind::cell: {
                Value cell = vm::make_object<vm::LocalCell>(m.operand(i, 0));
                own_.emplace(cell.object(), cell);
                m.set(i, std::move(cell));
                return true;
            }
            case Kind::cell_set:
                if (!own_.contains(m.operand(i, 0).object()))
                    throw not_for_a_batch("a variable from outside is written");
                break;
            case Kind::forbidden:
                // A generic loop mostly has nothing to close.
                if (m.operand(i, 0).is_nil()) break;
                throw not_for_a_batch("errors are met, variables closed or tensors written");
            case Kind::follow:
                // The derivative that the function provides would be called after the batch has ended.
                if (holds_sample(m.operand(i, 1), 0) && is_around(m.operand(i, 0)))
                    throw not_for_a_batch("a function with a derivative of its own is differentiated");
                break;
            case Kind::other:
                break;
        }
        return watched(m, i);
    }
    bool before_call(vm::Machine& m, const Value& f, std::span<const Value> contexts, vm::Values& args,
                     const vm::Destination& to) override {
        if (!recorder_) return false;
        if (native(f) == Native::item && !args.empty() && is_sample(args[0]))
            throw not_for_a_batch("a sample becomes a number");
        return recorder_->before_call(m, f, contexts, args, to);
    }
    Value number_of(const Value& tensor) override {
        if (is_sample(tensor)) throw not_for_a_batch("a sample becomes a number");
        return recorder_ ? recorder_->number_of(tensor) : element(tensor.tensor(), 0);
    }
    void made(const Value& tensor) override {
        if (recorder_) recorder_->made(tensor);
    }
    void pass_on() override {
        if (recorder_) recorder_->pass_on();
    }
    Value settled(const Value& v) override { return recorder_ ? recorder_->settled(v) : v; }
    void admit(const Op& op) override {
        refuse_effects(op);
        if (op.draws()) will_draw(op);
    }

    Value run(const Op& op, std::span<const Value> given) override {
        std::vector<Value> args(given.begin(), given.end());
        refuse_effects(op);
        std::vector<Value> batched(args.size());
        bool any = false;
        for (size_t i = 0; i < args.size(); ++i) {
            batched[i] = batch_of(args[i]);
            any |= !batched[i].is_nil();
            if (!batched[i].is_nil() && !is_tensor_type(op.signature.params[i].type))
                throw not_for_a_batch("an attribute depends on the sample");
        }
        if (op.draws()) return draw(op, args, batched);
        if (!any) return really(op, args);
        if (op.host_fn) return lunaria::run(op, args);
        if (op.reads_type_only) {
            args[0] = Builder::call("narrow", {batched[0], int64_t{0}, int64_t{0}, int64_t{1}})
                          .reshape(args[0].tensor().shape())
                          .value();
            return really(op, args);
        }
        for (size_t i = 0; i < args.size() && !only_runs(); ++i) {
            args[i] = settled(args[i]);
            // A differentiation around the batch would see sums over all samples where they share an operand.
            if (batched[i].is_nil() && vm::is_differentiable(op) && (vm::marks_of(args[i]) & vm::followed_by(contexts)))
                throw not_for_a_batch("what all samples share is added to what one has, and differentiated");
        }
        check_tensor_args(op, args);
        const Call call(op, args, promoted_dtype(op, args));
        const Value results = batched_results(BatchCall(call, *this, batched, size_));
        if (!results.is_nil()) return stand_ins(results);
        Expansion expansion(*this);
        return expand(ExpandCall(call, expansion));
    }

    // Functions of the builder for the rules: operators on whole batches.
    Value emit(const Op& op, std::span<const Value> args) override { return really(op, args); }
    Value item(const Value& results, size_t i) override { return results.items().at(i); }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

  private:
    enum class Kind : uint8_t { other, cell, cell_set, forbidden, follow };
    struct Sample {
        Tensor stand_in;  // keeps the address of its body from being used again
        Value batched;
    };
    // The builder for expansions of composite operators: operators on samples.
    class Expansion final : public Builder {
      public:
        explicit Expansion(Batcher& batcher) : batcher_(batcher) {}
        Value emit(const Op& op, std::span<const Value> args) override { return batcher_.run(op, args); }
        Value item(const Value& results, size_t i) override { return results.items().at(i); }
        Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

      private:
        Batcher& batcher_;
    };

    static Kind kind_of(const Op& primitive) {
        static const std::vector<Kind> kinds = [] {
            std::vector<Kind> list(lua::language().all().size(), Kind::other);
            auto note = [&](std::string_view name, Kind kind) {
                list[static_cast<size_t>(lua::primitive(name).id)] = kind;
            };
            note("cell", Kind::cell);
            note("cell_set", Kind::cell_set);
            note("follow", Kind::follow);
            // Errors are caught and variables closed for each sample; a tensor that is written may be visible outside.
            for (const char* name : {"guard", "to_close", "overwrite"}) note(name, Kind::forbidden);
            return list;
        }();
        return kinds[static_cast<size_t>(primitive.id)];
    }
    bool is_around(const Value& context) const {
        return std::ranges::any_of(contexts, [&](const Value& c) { return c.object() == context.object(); });
    }
    // Open numbers cannot be combined with samples.
    void settle(vm::Machine& m, const vm::Instr& i) const {
        bool sample = false;
        for (uint32_t k = 0; k < i.slot_count; ++k) sample |= m.slot(i, k).items < 0 && is_sample(m.operand(i, k));
        for (uint32_t k = 0; sample && k < i.slot_count; ++k) {
            const vm::Slot& slot = m.slot(i, k);
            if (slot.items >= 0 || slot.at < 0 || m.get(slot).kind() != Value::Kind::object) continue;
            if (trace::symbolic_number(m.get(slot))) m.reg(slot.at) = recorder_->settled(m.get(slot));
        }
    }
    bool watched(vm::Machine& m, const vm::Instr& i) { return recorder_ && recorder_->step(m, i); }
    lua_CFunction function_of(const char* library, const char* name) const {
        lua_State* L = host_.lua();
        const int top = lua_gettop(L);
        luaL_checkstack(L, 4, kWhere.data());
        lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        if (lua_getfield(L, -1, library) == LUA_TTABLE) lua_getfield(L, -1, name);
        const lua_CFunction c = lua_tocfunction(L, -1);
        lua_settop(L, top);
        return c;
    }
    lua_CFunction c_function(const Value& f) const {
        auto* r = vm::object_as<LuaReference>(f);
        if (!r || r->type != LUA_TFUNCTION) return nullptr;
        lua_State* L = host_.lua();
        luaL_checkstack(L, 1, kWhere.data());
        r->push(L);
        const lua_CFunction c = lua_tocfunction(L, -1);
        lua_pop(L, 1);
        return c;
    }
    Native native(const Value& f) const {
        auto* r = vm::object_as<LuaReference>(f);
        if (!r || r->type != LUA_TFUNCTION) return Native::unknown;
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, kWhere.data());
        r->push(L);
        const Native kind = natives_.find(L, -1);
        lua_pop(L, 1);
        return kind;
    }
    // Whether the value stands for samples, of this batch or of one around it.
    bool is_sample(const Value& v) const {
        return v.is_tensor() && (samples_.contains(v.tensor().body()) || (around_ && around_->is_sample(v)));
    }
    // Whether such a function of the host, called with these arguments, does the same for every sample.
    bool only_looks(Native kind, std::span<const Value> args) {
        switch (kind) {
            case Native::select:
            case Native::check:
            case Native::type_of:
            case Native::get_metatable:
            case Native::raw_equal:
            case Native::raw_length:
            case Native::next_key:
            case Native::ipairs:
            case Native::is_tensor:
            case Native::is_parameter:
            case Native::ignored:
            case Native::alike:
            case Native::is_alike:
            case Native::shape:
            case Native::rank:
                return true;
            case Native::pairs:
                return !args.empty() && host_.is_table(args[0]) &&
                       inner_.metamethod(args[0], args[0], "__pairs").is_nil();
            case Native::set_metatable:
                return !args.empty() && is_own(args[0]);
            case Native::pure:
                return std::ranges::all_of(args, [](const Value& v) {
                    return v.kind() <= Value::Kind::dtype || v.kind() == Value::Kind::string;
                });
            case Native::reader:
                return std::ranges::none_of(args, [&](const Value& v) { return holds_sample(v, 0); });
            default:
                return false;
        }
    }
    bool holds_sample(const Value& v, int depth) const {
        if (is_sample(v)) return true;
        if (v.is_list()) return std::ranges::any_of(v.items(), [&](const Value& i) { return holds_sample(i, depth); });
        if (auto* closure = vm::object_as<vm::Closure>(v); closure && depth < 8)
            return std::ranges::any_of(closure->captures, [&](const Value& i) { return holds_sample(i, depth + 1); });
        if (!host_.is_table(v)) return false;
        if (depth >= 8) return true;
        lua_State* L = host_.lua();
        luaL_checkstack(L, 6, kWhere.data());
        host_.push(L, v);
        const int table = lua_gettop(L);
        bool found = false;
        lua_pushnil(L);
        while (!found && lua_next(L, table)) {
            const int type = lua_type(L, -1);
            if (type == LUA_TUSERDATA || type == LUA_TTABLE || type == LUA_TFUNCTION)
                found = holds_sample(host_.to_value(L, -1), depth + 1);
            lua_pop(L, 1);
        }
        lua_settop(L, table - 1);
        return found;
    }
    size_t count_samples(const Value& v) const {
        if (is_sample(v)) return 1;
        size_t count = 0;
        if (v.is_list())
            for (const Value& item : v.items()) count += count_samples(item);
        return count;
    }
    bool is_own(const Value& table) const { return own_.contains(vm::identity_of(table)); }

    // The argument with tensors of the batch; nil if it is the same for all samples.
    Value batch_of(const Value& v) const {
        if (!v.is_list()) return taken(v);
        std::vector<Value> items;
        bool any = false;
        for (const Value& item : v.items()) {
            items.push_back(batch_of(item));
            any |= !items.back().is_nil();
        }
        return any ? Value::list(std::move(items)) : Value();
    }
    // Runs an operator for the watcher outside.
    Value really(const Op& op, std::span<const Value> args) const {
        const vm::Watch watch(outer_);
        return vm::execute(op, args);
    }
    Value stand_ins(const Value& results) {
        if (++operators_ % kSweep == 0)
            std::erase_if(samples_, [](const auto& entry) {
                return entry.second.stand_in.body()->refs.load(std::memory_order_relaxed) == 1;
            });
        if (!results.is_list()) return sample_of(results);
        std::vector<Value> items;
        for (const Value& v : results.items()) items.push_back(sample_of(v));
        return Value::list(std::move(items));
    }

    // Numbers have to be drawn in the order of a loop over the samples, which is known only for a single call.
    void will_draw(const Op& op) {
        if (recorder_) throw not_for_a_batch("random numbers are drawn");
        if (std::exchange(drew_, true)) throw not_for_a_batch("random numbers are drawn more than once");
        if (op.expand_fn && !op.infer_fn) throw not_for_a_batch("random numbers are drawn by several operators");
    }
    Value draw(const Op& op, const std::vector<Value>& args, const std::vector<Value>& batched) {
        will_draw(op);
        const Call call(op, args, promoted_dtype(op, args));
        return stand_ins(one_by_one(BatchCall(call, *this, batched, size_)));
    }

    LuaHost& host_;
    const Natives& natives_;
    const int64_t size_;
    vm::Watcher* const outer_;
    Batcher* const around_;
    vm::Watcher* const recorder_;  // the watcher that records the run, or null
    const RandomStream random_;
    bool drew_ = false;
    std::vector<lua_CFunction> looking_;  // functions that only ask for the type of a value
    size_t operators_ = 0;
    std::array<Tensor, kDTypeCount> zeros_;  // the element of the stand-ins, by dtype
    std::unordered_map<const void*, Sample> samples_;
    std::unordered_map<const void*, Value> own_;  // tables and variables made by the run
};

}  // namespace

Value LuaHost::open_batch(vm::Host& around, int64_t size) {
    // A C function called by the watched program has the host itself around it.
    const bool unseen = vm::watcher() && &around == this;
    if (unseen || State::of(L).debugger().wants_stop_points()) return {};
    return Value::adopt(new Batcher(*this, around, size));
}

int count_batch_rules(lua_State* L) {
    lua_Integer with_rule = 0, all = 0;
    for (const auto& op : registry().all()) {
        ++all;
        with_rule += has_batch_rule(*op) || (op->expand_fn && op->is_repeatable());
    }
    lua_pushinteger(L, with_rule);
    lua_pushinteger(L, all);
    return 2;
}

}  // namespace lunaria
