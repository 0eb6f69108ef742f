#include "jit/runtime/library.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "core/base/spelling.h"
#include "core/io/embedded.h"
#include "core/ops/indexing.h"
#include "core/tensor/element.h"
#include "jit/frontend/parser.h"
#include "jit/language.h"
#include "jit/lower/lower.h"
#include "jit/runtime/natives.h"
#include "jit/saving/library_functions.h"
#include "jit/saving/names.h"
#include "jit/vm/plain_arguments.h"
#include "jit/vm/watcher.h"

namespace lunaria::runtime {

using vm::PlainHost;

namespace {

using Table = PlainHost::Table;
using vm::Values;

Table& table_of(const Value& v) { return *vm::object_as<Table>(v); }

Value closure_of(const vm::OperatorFunction& f) { return vm::make_object<vm::Closure>(*f.function, f.owner, Values()); }

const LibraryFunction* find_row(std::string_view library, std::string_view name) {
    static const auto kRows = [] {
        std::map<std::pair<std::string_view, std::string_view>, const LibraryFunction*> rows;
        for_each_library_function([&](const LibraryFunction& row, std::string_view f) {
            rows[{row.library, f}] = &row;
        });
        return rows;
    }();
    const auto found = kRows.find({library, name});
    return found == kRows.end() ? nullptr : found->second;
}

// Functions of the machine's own, by the names of interpreter/bindings/bind_autodiff.cpp.
void add_machine_functions(Table& core) {
    using vm::Prelude;
    const std::pair<const char*, Prelude> functions[] = {
        {"vjp", Prelude::vjp},          {"derivative", Prelude::derivative}, {"gradient", Prelude::gradient},
        {"cotangent", Prelude::shadow}, {"custom", Prelude::custom},         {"checkpoint", Prelude::checkpoint},
        {"stop", Prelude::stop},        {"batch", Prelude::batched},         {"raw_get", Prelude::raw_index},
        {"raw_set", Prelude::raw_set},  {"content", Prelude::content},       {"overwrite", Prelude::overwrite},
        {"item", Prelude::item}};
    for (const auto& [name, which] : functions) core.set(Value(name), closure_of(vm::prelude(which)));
}

// Whether a number or tensor can be the content of all of the tensor.
bool fills(const Value& x, const Value& value) {
    if (value.is_number()) return true;
    if (!value.is_tensor()) return false;
    const Shape &whole = x.tensor().shape(), &part = value.tensor().shape();
    if (part.rank() > whole.rank()) return false;
    for (int i = 1; i <= part.rank(); ++i)
        if (part[part.rank() - i] != 1 && part[part.rank() - i] != whole[whole.rank() - i]) return false;
    return true;
}

Values tensor_of(std::span<const Value> args) {
    const Arguments a("tensor", args);
    Value named = a.at(1);
    if (const Table* options = vm::object_as<Table>(named)) named = options->get(Value("dtype"));
    const std::optional<DType> dtype = vm::plain_dtype(named);
    if (!named.is_nil() && !dtype)
        throw dtype_error(
            "tensor", str("dtype must be a dtype such as ms.float32 or \"float32\", got ", vm::describe_plain(named)));
    return {Value(vm::plain_tensor(a.any(0), dtype))};
}

// slice(stop), slice(start, stop [, step])
Values slice_of(std::span<const Value> args) {
    const Arguments a("slice", args);
    if (a.size() > 3) throw argument_error("slice", str("takes at most 3 arguments, got ", a.size()));
    constexpr std::string_view kNames[] = {"start", "stop", "step"};
    Value slice = PlainHost::table({}, vm::slice_metatable());
    for (size_t i = 0; i < a.size(); ++i)
        if (a.has(i)) table_of(slice).set(Value(kNames[a.size() == 1 ? 1 : i]), Value(a.integer(i)));
    return {slice};
}

bool is_floating(const Value& v) {
    return v.kind() == Value::Kind::number ||
           (v.is_tensor() && (is_float(v.tensor().dtype()) || is_complex(v.tensor().dtype())));
}

// How tensors' shapes print.
Values shape_text(std::span<const Value> args) {
    const Table& t = Arguments("tostring", args).table(0);
    Shape shape;
    for (int64_t i = 1, n = t.length(); i <= n; ++i) shape.push_back(t.get(Value(i)).integer());
    return {Value(str(shape))};
}

Values same_shape(std::span<const Value> args) {
    const Arguments a("eq", args);
    const Table *x = vm::object_as<Table>(a.at(0)), *y = vm::object_as<Table>(a.at(1));
    bool same = x && y && x->length() == y->length();
    for (int64_t i = 1; same && i <= x->length(); ++i) same = vm::KeyEqual()(x->get(Value(i)), y->get(Value(i)));
    return {Value(same)};
}

// nearest(name, names)
Values nearest_of(std::span<const Value> args) {
    const Arguments a("nearest", args);
    const std::string name(a.text(0));
    std::vector<std::string> texts;
    for (int64_t i = 1;; ++i) {
        const Value other = a.table(1).get(Value(i));
        if (other.kind() != Value::Kind::string) break;
        texts.push_back(other.string());
    }
    const std::vector<std::string_view> names(texts.begin(), texts.end());
    const std::string text = nearest(name, names);
    return {text.empty() ? Value() : Value(text)};
}

Value plain_function(const char* name, Native native, Values (*body)(std::span<const Value>)) {
    return PlainHost::function(name, native, body);
}

}  // namespace

Library::Library(PlainHost& host) : host_(host), machine_(host) {
    for (const char* name : {"_G", "math", "string", "table", "coroutine", "lunaria", "lunaria.autodiff", "lunaria.jit",
                             "lunaria.nn.arguments", "tensor"})
        libraries_[name] = PlainHost::table({});
    globals_ = libraries_["_G"];
    for (auto list : {basic_functions(), text_functions(), table_functions(), tensor_methods()})
        for (LibraryBody& f : list) {
            add(f.library, f.name, std::move(f.body));
            if (!f.whole) in_texts_.insert(vm::identity_of(in_library(f.library, f.name)));
        }
    Table& globals = table_of(globals_);
    const Value step = PlainHost::function("ipairs_step", Native::unknown, [](std::span<const Value> args) {
        const Arguments a("ipairs", args);
        const Value i(static_cast<int64_t>(static_cast<uint64_t>(a.integer(1)) + 1)), v = a.table(0).get(i);
        return v.is_nil() ? Values{Value()} : Values{i, v};
    });
    add("_G", "ipairs", [step](std::span<const Value> args) {
        return Values{step, Arguments("ipairs", args).any(0), Value(0)};
    });
    add("_G", "pairs", [next = globals.get(Value("next"))](std::span<const Value> args) {
        const Arguments a("pairs", args);
        a.table(0);
        return Values{next, args[0], Value()};
    });
    globals.set(Value("pcall"), closure_of(vm::prelude(vm::Prelude::pcall)));
    globals.set(Value("xpcall"), closure_of(vm::prelude(vm::Prelude::xpcall)));
    globals.set(Value("error"), closure_of(vm::prelude(vm::Prelude::error)));
    using Kind = vm::NativeFunction::Kind;
    for (const auto& [name, kind] : {std::pair("create", Kind::create), std::pair("wrap", Kind::wrap),
                                     std::pair("resume", Kind::resume), std::pair("yield", Kind::yield),
                                     std::pair("status", Kind::status), std::pair("isyieldable", Kind::is_yieldable),
                                     std::pair("close", Kind::close), std::pair("running", Kind::running)})
        table_of(libraries_["coroutine"]).set(Value(name), closure_of(vm::native_function(kind, Value())));
    host_.text_metatable = PlainHost::table({{Value("__index"), libraries_["string"]}});
    host_.shape_metatable =
        PlainHost::table({{Value("__tostring"), plain_function("tostring", Native::pure, shape_text)},
                          {Value("__eq"), plain_function("eq", Native::unknown, same_shape)}});
    host_.replace(in_library("tensor", "item"), closure_of(vm::prelude(vm::Prelude::item)), "X-");
    in_texts_.insert(vm::identity_of(in_library("_G", "pairs")));
    host_.method = [this](std::string_view name) { return method_named(name); };
    add_module_functions();
}

void Library::add(const char* library, const char* name, PlainHost::Function::Body body) {
    const LibraryFunction* row = find_row(library, name);
    const Value f = PlainHost::function(name, row ? row->recorded : Native::unknown, std::move(body));
    if (row && row->derivative == Derivative::harmless) host_.set_harmless(f);
    table_of(libraries_.at(library)).set(Value(name), f);
}

void Library::add_module_functions() {
    add("lunaria", "tensor", tensor_of);
    add("lunaria", "slice", slice_of);
    add("lunaria", "is_tensor",
        [](std::span<const Value> args) { return Values{Value(Arguments("is_tensor", args).at(0).is_tensor())}; });
    add("lunaria.autodiff", "fail",
        [](std::span<const Value> args) -> Values { throw argument_error("", Arguments("fail", args).text(0)); });
    add("lunaria.autodiff", "is_float",
        [](std::span<const Value> args) { return Values{Value(is_floating(Arguments("is_float", args).at(0)))}; });
    add("lunaria.autodiff", "is_dtype", [](std::span<const Value> args) {
        return Values{Value(vm::plain_dtype(Arguments("is_dtype", args).at(0)).has_value())};
    });
}

Value Library::in_library(std::string_view library, std::string_view name) const {
    const auto found = libraries_.find(library);
    return found == libraries_.end() ? Value() : table_of(found->second).get(Value(name));
}

Value Library::function_named(const std::string& name) {
    constexpr std::string_view kOperators = "ms.ops.";
    Value found;
    if (name.starts_with(kOperators)) {
        const Op* op = registry().find(name.substr(kOperators.size()));
        if (op) found = PlainHost::operator_value(*op);
    } else if (name == kNewAxisName) {
        found = PlainHost::table({}, vm::new_axis_metatable());
    } else {
        // Derivatives need the texts of all; a program asks for them by functions of the texts.
        for_each_library_function([&](const LibraryFunction& row, std::string_view function) {
            if (row.saved == Saved::unnamed || row.saved == Saved::known || saved_name(row, function) != name) return;
            found = in_library(row.library, function);
            if (!found.is_nil() && !in_texts_.contains(vm::identity_of(found))) return;
            load_texts();
            found = in_library(row.library, function);
        });
    }
    if (found.is_nil()) missing_ = name;
    return found;
}

void Library::prepare_field(std::string_view name) {
    const Value own = in_library("tensor", name);
    const bool in_place = name.ends_with('_') && registry().find(name.substr(0, name.size() - 1));
    if (in_place || (!own.is_nil() && in_texts_.contains(vm::identity_of(own)))) load_texts();
}

// Operators as methods, x:add_(y) and its like, methods that are written in C++, then those of the texts.
Value Library::method_named(std::string_view name) {
    const vm::Watch unwatched(nullptr);
    const auto operator_with = [](std::string_view operator_name) -> const Op* {
        const Op* op = registry().find(operator_name);
        return op && op->is_method ? op : nullptr;
    };
    // As interpreter/values/tensor_methods.cpp has them.
    static constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
        {"view", "reshape"}, {"repeat", "tile"}, {"repeat_", "tile"}};
    for (const auto& [method, of] : kOtherNames)
        if (name == method) return PlainHost::operator_value(registry().get(of));
    if (Value own = in_library("tensor", name); !own.is_nil()) {
        if (in_texts_.contains(vm::identity_of(own))) load_texts();
        return own;
    }
    if (const Op* op = operator_with(name)) return PlainHost::operator_value(*op);
    if (const Op* op = name.ends_with('_') ? operator_with(name.substr(0, name.size() - 1)) : nullptr) {
        load_texts();
        return machine_.run(in_place_maker_, Values{PlainHost::operator_value(*op), in_place_function(*op)})[0];
    }
    if (!embedded_text("lunaria/tensor_methods.lua").empty()) {
        load_texts();
        constexpr const char* kMethods = "lunaria.tensor_methods";
        auto methods = libraries_.find(kMethods);
        // While the text runs, the table is none of the libraries yet.
        if (methods == libraries_.end()) methods = libraries_.emplace(kMethods, run_text(kMethods)).first;
        return table_of(methods->second).get(Value(name));
    }
    return {};
}

// What the texts ask of the module lunaria.autodiff, by the names of interpreter/bindings/bind_autodiff.cpp.
void Library::load_texts() {
    if (has_texts_) return;
    has_texts_ = true;
    const vm::Watch unwatched(nullptr);
    Table &globals = table_of(globals_), &ms = table_of(libraries_["lunaria"]),
          &core = table_of(libraries_["lunaria.autodiff"]), &jit = table_of(libraries_["lunaria.jit"]);
    Table& math = table_of(libraries_["math"]);
    math.set(Value("pi"), Value(std::numbers::pi));
    math.set(Value("huge"), Value(std::numeric_limits<double>::infinity()));
    math.set(Value("maxinteger"), Value(std::numeric_limits<int64_t>::max()));
    math.set(Value("mininteger"), Value(std::numeric_limits<int64_t>::min()));
    for (const char* name : {"math", "string", "table", "coroutine"}) globals.set(Value(name), libraries_[name]);

    Value operators = PlainHost::table({});
    for (const auto& op : registry().all()) {
        table_of(operators).set(Value(op->name()), PlainHost::operator_value(*op));
        for (const char* alias : op->aliases) table_of(operators).set(Value(alias), PlainHost::operator_value(*op));
    }
    ms.set(Value("ops"), operators);
    for (const char* name : {"arange", "ones", "zeros"}) ms.set(Value(name), table_of(operators).get(Value(name)));
    ms.set(Value("bool_"), Value(DType::boolean));
    ms.set(Value("io"), PlainHost::table({{Value("nearest"), plain_function("nearest", Native::unknown, nearest_of)}}));
    modules_ = PlainHost::table(
        {{Value("lunaria.devices"),
          PlainHost::table(
              {{Value("is_device"), PlainHost::function("is_device", Native::pure, [](std::span<const Value> args) {
                    return Values{Value(Arguments("is_device", args).text(0) == host_device()->name())};
                })}})}});
    for (int i = 0; i < kDTypeCount; ++i) ms.set(Value(name_of(static_cast<DType>(i))), Value(static_cast<DType>(i)));

    add_machine_functions(core);
    const auto of_core = [&](const char* name, Native native, PlainHost::Function::Body body) {
        core.set(Value(name), PlainHost::function(name, native, std::move(body)));
    };
    const auto nothing = [](std::span<const Value>) { return Values(); };
    of_core("replace", Native::unknown, [this](std::span<const Value> args) {
        const Arguments a("replace", args);
        bool followed = a.at(2).kind() == Value::Kind::boolean && a.at(2).boolean();
        std::string_view kinds;
        for (const auto& [library, table] : libraries_)
            table_of(table).for_each([&, &name_of_library = library](const Value& name, const Value& f) {
                if (!vm::KeyEqual()(f, a.at(0)) || name.kind() != Value::Kind::string) return;
                if (const LibraryFunction* row = find_row(name_of_library, name.string())) kinds = row->arguments;
                // The texts are all that there is of methods.
                if (name_of_library == "tensor") followed = false;
            });
        if (followed || host_.operator_in(a.at(0)))
            host_.set_stand_in(a.at(0), a.at(1));
        else
            host_.replace(a.at(0), a.at(1), kinds);
        return Values();
    });
    of_core("original", Native::unknown, [this](std::span<const Value> args) {
        const Value f = Arguments("original", args).any(0);
        if (const Op* op = host_.operator_in(f))
            return Values{
                PlainHost::function(std::string(op->name()), Native::unknown, [op](std::span<const Value> given) {
                    const Value result = run(*op, vm::bind_plain(*op, given).args);
                    return result.is_list() && !op->signature.results.empty() ? Values(result.items()) : Values{result};
                })};
        const auto* function = vm::object_as<PlainHost::Function>(f);
        if (!function) return Values{f};
        return Values{PlainHost::function(function->name, function->native, function->body)};
    });
    of_core("number", Native::unknown, [](std::span<const Value> args) {
        return Values{closure_of(vm::number_function(lua::primitive(Arguments("number", args).text(0))))};
    });
    of_core("next_key", Native::next_key,
            [](std::span<const Value> args) { return Values{Arguments("next", args).table(0).next(args[1])}; });
    of_core("metamethod", Native::unknown, [this](std::span<const Value> args) {
        const Arguments a("metamethod", args);
        return Values{host_.metamethod(a.at(0), a.at(0), a.text(1))};
    });
    of_core("fills", Native::unknown,
            [](std::span<const Value> args) { return Values{Value(fills(args[0], args[1]))}; });
    of_core("fits", Native::unknown, [](std::span<const Value> args) {
        return Values{Value(args[1].is_tensor() && vm::fits_in_place(args[0].tensor(), args[1].tensor()))};
    });
    of_core("in_place", Native::unknown, [this](std::span<const Value> args) {
        in_place_maker_ = args[0];
        return Values();
    });
    // Derivatives have another answer.
    of_core("is_followed", Native::unknown, [](std::span<const Value>) { return Values{Value(false)}; });
    of_core("table_by_tensor", Native::unknown, [](std::span<const Value>) { return Values{PlainHost::table({})}; });
    of_core("note", Native::ignored, nothing);
    of_core("note_harmless", Native::unknown, nothing);
    for (const char* name : {"next_key", "metamethod", "fills", "fits"}) host_.set_harmless(core.get(Value(name)));

    // Nothing is compiled on its own within a program: a call of it is recorded as a whole.
    jit.set(Value("mode"), PlainHost::table({}));
    jit.set(Value("inside"),
            PlainHost::function("inside", Native::inside, [](std::span<const Value>) { return Values{Value(true)}; }));
    jit.set(Value("make"),
            PlainHost::function("make", Native::alike, [](std::span<const Value> args) { return Values{args[0]}; }));
    globals.set(Value("require"), PlainHost::function("require", Native::unknown, [this](std::span<const Value> args) {
                    return Values{table_of(modules_).get(Arguments("require", args).any(0))};
                }));
    Table& modules = table_of(modules_);
    for (const char* name : {"lunaria", "lunaria.autodiff", "lunaria.jit"}) modules.set(Value(name), libraries_[name]);
    for (const char* name : {"lunaria.nn.arguments", "lunaria.vmap", "lunaria.adjoints", "lunaria.adjoints_attributes",
                             "lunaria.adjoints_methods", "lunaria.adjoints_optimizers"})
        modules.set(Value(name), run_text(name));
    libraries_["lunaria.nn.arguments"] = modules.get(Value("lunaria.nn.arguments"));
    modules.set(Value("lunaria.adjoints_session"), PlainHost::function("adjoints_session", Native::unknown, nothing));
    run_text("lunaria.transforms");
}

// Most functions of the texts are for functions and operators that a program does not call.
static void lower_when_called(const std::shared_ptr<const lua::Chunk>& chunk,
                              const std::vector<lower::Later>& functions) {
    for (const lower::Later& one : functions)
        vm::function_of(*one.graph).make = [chunk, one] {
            std::vector<lower::Later> inside;
            lower::lower_later(*chunk, one, inside);
            lower_when_called(chunk, inside);
        };
}

// The values of a module's chunk.
Value Library::run_text(std::string_view name) {
    std::string path(name);
    std::ranges::replace(path, '.', '/');
    const std::string_view text = embedded_text(path + ".lua");
    if (text.empty()) throw state_error("runtime", str("there is no text of ", name));
    const std::shared_ptr<const lua::Chunk> chunk = lua::parse(std::string(text), "lunaria:" + path + ".lua");
    std::vector<lower::Later> later;
    std::shared_ptr<ir::Graph> graph = lower::lower(*chunk, chunk->main(), false, nullptr, &later);
    lower_when_called(chunk, later);
    Values captures;
    if (graph->captures > 0) captures.push_back(globals_);
    vm::Function& function = vm::function_of(*graph);
    const Value f = vm::make_object<vm::Closure>(function, std::move(graph), std::move(captures));
    const Values results = machine_.run(f, {});
    return results.empty() ? Value() : results[0];
}

}  // namespace lunaria::runtime
