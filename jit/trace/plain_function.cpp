#include "jit/trace/plain_function.h"

#include "core/ir/text.h"

namespace lunaria::trace {

namespace {

using vm::PlainHost;

// The identity of a dtype where an object of a language would be expected.
const void* identity_of(DType dtype) {
    static const char addresses[256] = {};
    return &addresses[static_cast<size_t>(dtype)];
}

bool fits(const Guards::Check& check, const Value& v) {
    using Kind = Guards::Check::Kind;
    switch (check.kind) {
        case Kind::nil:
            return v.is_nil();
        case Kind::boolean:
            return v.kind() == Value::Kind::boolean && v.boolean() == (check.bits != 0);
        case Kind::integer:
            return v.kind() == Value::Kind::integer && v.integer() == check.bits;
        case Kind::number:
            return v.kind() == Value::Kind::number && identical(v, Value(std::bit_cast<double>(check.bits)));
        case Kind::text:
            return v.kind() == Value::Kind::string && v.string() == check.text->string();
        case Kind::object:
            return v.kind() == Value::Kind::object && vm::identity_of(v) == check.pointer;
    }
    return false;
}

class PlainOutside final : public Outside {
  public:
    PlainOutside(PlainHost& host, const Value& function, std::span<const Value> args, PlainFunction::Kept& kept)
        : Outside(host, static_cast<int64_t>(args.size())), function_(function), args_(args), kept_(kept) {}

    Answer ask(const Question& q) override {
        last_ = value_of(q);
        Answer answer;
        answer.identity = vm::identity_of(last_);
        switch (last_.kind()) {
            case Value::Kind::nil:
                break;
            case Value::Kind::boolean:
                answer.kind = Answer::Kind::boolean;
                answer.boolean = last_.boolean();
                break;
            case Value::Kind::integer:
                answer.kind = Answer::Kind::integer;
                answer.integer = last_.integer();
                break;
            case Value::Kind::number:
                answer.kind = Answer::Kind::number;
                answer.number = last_.number();
                break;
            case Value::Kind::string:
                answer.kind = Answer::Kind::text;
                answer.text = last_.string();
                break;
            case Value::Kind::tensor:
                answer.kind = Answer::Kind::tensor;
                answer.tensor = &last_.tensor();
                if (q.handle) answer.handle = last_;
                break;
            case Value::Kind::dtype:
                answer.kind = Answer::Kind::other;
                answer.identity = identity_of(last_.dtype());
                break;
            default:
                answer.kind = host.is_table(last_) ? Answer::Kind::table : Answer::Kind::other;
        }
        if (q.value) answer.value = last_;
        return answer;
    }

    bool hold(const Guards& guards) override {
        using What = Guards::Check::What;
        const PlainHost::Table* table = nullptr;
        Value key;
        for (const Guards::Check& check : guards.checks()) {
            switch (check.what) {
                case What::object:
                    table = vm::object_as<PlainHost::Table>(kept_.at(check.at));
                    if (!table) return false;
                    continue;
                case What::read:
                    if (!fits(check, table->get(kept_.at(check.at)))) return false;
                    continue;
                case What::item:
                    if (!fits(check, table->get(Value(check.key)))) return false;
                    continue;
                case What::metatable:
                    if (!fits(check, table->metatable)) return false;
                    continue;
                case What::length:
                    if (!fits(check, Value(table->length()))) return false;
                    continue;
                case What::next:
                    key = table->next(check.first ? Value() : key);
                    if (!fits(check, key)) return false;
                    continue;
                case What::value:
                    if (!fits(check, table->get(key))) return false;
                    continue;
                default:
                    return false;
            }
        }
        return true;
    }

    bool call(const Value& f, std::span<const Value> args, const Step& step, vm::Values& results,
              Value& error) override {
        const vm::Host::Protected outcome = host.call_protected([&] {
            try {
                results = host.call(f, args);
            } catch (const Error& e) {
                if (step.direct || step.span().line == 0 || !e.place().empty()) throw;
                throw Error(e).at(ir::place_text(step.span()));
            }
        });
        if (!outcome.ok) error = outcome.error;
        return outcome.ok;
    }
    Value make_table(std::span<const Value> recipe) override {
        Value v = PlainHost::table({}, recipe[2]);
        for (size_t i = 3; i + 1 < recipe.size(); i += 2) host.raw_set(v, recipe[i], recipe[i + 1]);
        return v;
    }
    void pour(const Value& from, const Value& to) override {
        vm::object_as<PlainHost::Table>(to)->take(*vm::object_as<PlainHost::Table>(from));
    }
    // The variables of a program's functions belong to the machine itself.
    void set_upvalue(const Value&, int, const Value&) override {}
    const void* variable(const Value&, int) override { return nullptr; }
    // A tensor is its own handle.
    Value handle_of(const Value& tensor) override { return tensor; }

    Type type_of(const Value& v) override {
        if (host.is_table(v)) return Type::table;
        return vm::object_as<PlainHost::Function>(v) ? Type::function : Type::none;
    }
    Native native(const Value& f) override {
        if (const auto* function = vm::object_as<PlainHost::Function>(f)) return function->native;
        return host.is_function(f) ? Native::unknown : Native::error;
    }
    bool is_in_derivatives(const Value&) override { return false; }
    Value target(const Value& f) override { return f; }
    Value any_function() override { return function_; }
    CapturedNumbers& captured_numbers() override { return kept_.captured; }

    Value function() override { return function_; }
    void keep(Tree& tree) override {
        for_each_new_step(tree, [&](Step& step) {
            if (step.kind < Step::Kind::read || step.kind > Step::Kind::next || step.object_at) return;
            if (!host.is_table(step.args()[0])) return;
            step.object_at = kept_.place_of(step.args()[0]);
            if (step.kind == Step::Kind::read && step.args()[1].kind() == Value::Kind::string)
                step.key_at = kept_.place_of(step.args()[1]);
        });
    }
    Value lasting(const Value& v) override { return v; }
    vm::Host::Protected protect(const std::function<void()>& body) override { return host.call_protected(body); }
    void run(vm::Machine&, const std::function<void()>& body) override { body(); }

  private:
    Value value_of(const Question& q) {
        if (q.kind == Step::Kind::count) return Value(count);
        if (q.kind == Step::Kind::argument) return args_[static_cast<size_t>(q.position)];
        const Value& object = q.object_at > 0 ? kept_.at(q.object_at) : *q.object;
        const auto* table = vm::object_as<PlainHost::Table>(object);
        if (!table) return {};
        switch (q.kind) {
            case Step::Kind::read:
                return table->get(q.key_at > 0 ? kept_.at(q.key_at) : *q.key);
            case Step::Kind::metatable:
                return table->metatable;
            case Step::Kind::length:
                return Value(table->length());
            case Step::Kind::next:
                return table->next(q.key_at > 0 ? kept_.at(q.key_at) : *q.key);
            default:
                return {};
        }
    }

    const Value& function_;
    std::span<const Value> args_;
    PlainFunction::Kept& kept_;
    Value last_;  // answer
};

}  // namespace

int PlainFunction::Kept::place_of(const Value& v) {
    const auto [found, fresh] = places.try_emplace(v, static_cast<int>(values.size()) + 1);
    if (fresh) values.push_back(v);
    return found->second;
}

vm::Values PlainFunction::call(std::span<const Value> args) {
    Compiled& c = compiled_;
    ++c.calls;
    if (!c.waits() && c.eager.empty()) {
        if (c.is_crowded()) {
            c.start_over();
            kept_ = Kept();
        }
        PlainOutside outside(host_, function_, args, kept_);
        vm::Values results;
        if (c.attempt(outside, results)) return results;
    }
    ++c.interpreted;
    vm::Machine machine(host_);
    return machine.run(function_, vm::Values(std::vector<Value>(args.begin(), args.end())));
}

}  // namespace lunaria::trace
