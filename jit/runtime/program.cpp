#include "jit/runtime/program.h"

#include "core/loops/kernels.h"
#include "jit/language.h"
#include "jit/runtime/library.h"
#include "jit/runtime/natives.h"
#include "jit/saving/loaded_program.h"
#include "jit/trace/plain_function.h"
#include "jit/trace/region.h"
#include "jit/vm/cycles.h"

namespace lunaria::runtime {

using vm::PlainHost;

namespace {

constexpr int kDeepest = 20;  // of tables that are shown

void for_each_graph(const trace::Block& block, const std::function<void()>& f) {
    for (const auto& region : block.regions) region->for_each_executable([&](const graph::Executable&) { f(); });
    for (const auto& next : block.next) for_each_graph(*next, f);
}

Signature signature_of(const LoadedProgram& program) {
    Signature s;
    const ir::Graph& graph = *program.parsed.graph;
    size_t count = graph.parameters().size();
    if (graph.variadic && count > 0) --count;
    for (size_t i = 0; i < count; ++i) s.inputs.push_back({graph.parameters()[i]->name, program.input_types[i]});
    s.takes_more = graph.variadic;
    s.gives_any = !graph.result.is_list();
    if (graph.result.is_list())
        for (const Value& v : graph.result.items())
            s.outputs.push_back({"", v.is_node() ? v.node()->type : ir::NodeType()});
    for (const Value& w : program.weights)
        s.weights.push_back({w.tensor().parameter()->name, ir::NodeType::of({w.tensor().dtype(), w.tensor().shape()})});
    for (const auto& other : program.parsed.others) s.functions.push_back(other->name);
    return s;
}

void for_each_field(const ir::Graph& graph, const std::function<void(const std::string&)>& f) {
    for (const ir::Node* node : graph.body())
        if (node->op == &lua::primitive("index") && node->args[1].kind() == Value::Kind::string)
            f(node->args[1].string());
    for (const auto& inner : graph.inner()) for_each_field(*inner, f);
}

std::string text_at(const Value& v, int depth) {
    const auto* table = vm::object_as<PlainHost::Table>(v);
    if (!table) return depth > 0 && v.kind() == Value::Kind::string ? to_string(v) : text_of(v);
    if (depth >= kDeepest) return "{...}";
    std::string text = "{";
    int64_t next = 1;
    table->for_each([&](const Value& key, const Value& value) {
        if (text.size() > 1) text += ", ";
        const bool item = key.kind() == Value::Kind::integer && key.integer() == next;
        if (item)
            ++next;
        else
            text += (key.kind() == Value::Kind::string ? key.string() : "[" + text_of(key) + "]") + " = ";
        text += text_at(value, depth + 1);
    });
    return text + "}";
}

}  // namespace

// Objects that refer to one another in a circle end with the program that made them, also where it cannot be made.
struct EndOfCycles {
    ~EndOfCycles() { vm::collect_all_cycles(); }
};

struct Program::Parts {
    EndOfCycles last;  // of all members to be destroyed
    PlainHost host;
    Library library{host};
    std::shared_ptr<LoadedProgram> program;
    Signature signature;
    std::optional<trace::PlainFunction> function;
};

Program::Program(const Source& source) : parts_(std::make_unique<Parts>()) {
    Parts& p = *parts_;
    try {
        p.program = load_program(source, [&](const std::string& name) { return p.library.function_named(name); });
    } catch (const Error&) {
        if (p.library.missing().empty()) throw;
        throw source.error(str("the program calls ", p.library.missing(), ", which only the full program has"))
            .hint("run it with lunaria: ms.load(\"" + source.name() + "\")");
    }
    const auto prepare = [&](const std::string& name) { p.library.prepare_field(name); };
    for_each_field(*p.program->parsed.graph, prepare);
    for (const auto& other : p.program->parsed.others) for_each_field(*other, prepare);
    Value weights = PlainHost::table({});
    for (size_t i = 0; i < p.program->weights.size(); ++i)
        p.host.raw_set(weights, Value(static_cast<int64_t>(i) + 1), p.program->weights[i]);
    p.signature = signature_of(*p.program);
    p.function.emplace(p.host, function_of(p.program, weights));
}

Program::~Program() = default;

const Signature& Program::signature() const { return parts_->signature; }

std::vector<Value> Program::run(std::span<const Value> inputs) {
    const Signature& s = parts_->signature;
    if (inputs.size() > s.inputs.size() && !s.takes_more)
        throw argument_error("", str("the program takes ", s.inputs.size(), " inputs, got ", inputs.size()));
    try {
        return parts_->function->call(inputs).vector();
    } catch (const vm::Raised& raised) {
        throw Error(ErrorKind::state, "", text(raised.value));
    }
}

Counts Program::counts() const {
    trace::Compiled& compiled = parts_->function->compiled();
    Counts c;
    c.recorded = compiled.recorded;
    c.from_records = compiled.runs;
    for_each_graph(compiled.tree.root, [&] { ++c.graphs; });
    c.kernels = graph::kernel_cache_stats().read;
    c.refusal = compiled.eager.empty() ? compiled.refusal : compiled.eager;
    return c;
}

Value Program::table(std::vector<std::pair<Value, Value>> fields) { return PlainHost::table(std::move(fields)); }

std::optional<std::vector<std::pair<Value, Value>>> Program::fields(const Value& v) {
    const auto* table = vm::object_as<PlainHost::Table>(v);
    if (!table) return std::nullopt;
    std::vector<std::pair<Value, Value>> list;
    table->for_each([&](const Value& key, const Value& value) { list.emplace_back(key, value); });
    return list;
}

std::string Program::text(const Value& v) { return text_at(v, 0); }

}  // namespace lunaria::runtime
