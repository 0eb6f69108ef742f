#include "jit/vm/prelude.h"

#include <array>
#include <mutex>

#include "core/ir/parser.h"
#include "jit/vm/machine.h"

namespace lunaria::vm {

namespace {

struct Row {
    Prelude which;
    const char* text;
    Prelude failed = Prelude::count;  // the function that continues after an error of a function called by this one
};

// In the text form of graphs (core/ir/printer.h); the machine's own functions are called by name.
constexpr Row kRows[] = {
    {Prelude::raw_index, R"(graph index(%0 table: ?, %1 key: ?) {
  %2 = raw_index(%0, %1) : ?
  return {%2}
}
)"},
    {Prelude::raw_set, R"(graph set_index(%0 table: ?, %1 key: ?, %2 value: ?) {
  %3 = raw_set(%0, %1, %2) : ?
  return {%0}
}
)"},
    {Prelude::content, R"(graph content(%0 x: ?) {
  %1 = content(%0, {}) : ?
  return {%1}
}
)"},
    {Prelude::content_index, R"(graph index(%0 x: ?, %1 key: ?) {
  %2 = content(%0, {}) : ?
  %3 = index(%2, %1) : ?
  return {%3}
}
)"},
    {Prelude::content_set_index, R"(graph set_index(%0 x: ?, %1 key: ?, %2 value: ?) {
  %3 = content(%2, {}) : ?
  %4 = set_index(%0, %1, %3) : ?
  return {}
}
)"},
    {Prelude::overwrite, R"(graph overwrite(%0 x: ?, %1 value: ?) {
  %2 = content(%1, {}) : ?
  %3 = overwrite(%0, %2) : ?
  return {%0}
}
)"},
    {Prelude::stop, R"(graph stop_gradient(%0 x: ?) {
  %1 = content(%0, {}) : ?
  %2 = stop(%1) : ?
  return {%2}
}
)"},
    {Prelude::item, R"(graph item(%0 x: ?) {
  %1 = content(%0, {}) : ?
  %2 = to_number(%1) : ?
  return {%2}
}
)"},
    {Prelude::shadow_add, R"(graph shadow_add(%0 shadow: ?, %1 key: ?, %2 d: ?) captures 2 {
  %3 = shadow_add(%0, %1, %2) : ?
  return {}
}
)"},
    {Prelude::shadow_take, R"(graph shadow_take(%0 shadow: ?, %1 key: ?) captures 2 {
  %2 = shadow_take(%0, %1) : ?
  return {nil, nil, %2}
}
)"},
    {Prelude::shadow, R"(graph cotangent(%0 context: ?, %1 object: ?, %2 key: ?) {
  %3 = shadow_of(%0, %1) : ?
  %4 = shadow_get(%3, %2) : ?
  %5 = give_out(%0, {%4}) : ?
  return %5
}
)"},
    {Prelude::truth, R"(graph comparison(%0 f: ?, %1 a: ?, %2 b: ?) captures 1 {
  %3 = call(%0, {%1, %2}) : ?
  %4 = result(%3, 0) : ?
  %5 = not(%4) : ?
  %6 = not(%5) : ?
  return {%6}
}
)"},
    {Prelude::alike, R"(graph call(%0 f: ?, %1 ...: ?) captures 1 variadic {
  %2 = call(%0, %1) : ?
  return %2
}
)"},
    {Prelude::bound, R"(graph call(%0 f: ?, %1 first: ?, %2 ...: ?) captures 2 variadic {
  %3 = spread({%1}, %2) : ?
  %4 = call(%0, %3) : ?
  return %4
}
)"},
    {Prelude::pcall, R"(graph pcall(%0 f: ?, %1 ...: ?) variadic {
  %2 = guard(true) : ?
  %3 = call(%0, %1) : ?
  %4 = spread({true}, %3) : ?
  return %4
}
)",
     Prelude::pcall_failed},
    {Prelude::pcall_failed, R"(graph pcall(%0 f: ?, %1 ...: ?) variadic {
  %2 = guard(true) : ?
  %3 = call(%0, %1) : ?
  %4 = result(%3, 0) : ?
  return {false, %4}
}
)"},
    {Prelude::xpcall, R"(graph xpcall(%0 f: ?, %1 handler: ?, %2 ...: ?) variadic {
  %3 = guard(true) : ?
  %4 = call(%0, %2) : ?
  %5 = keep({}, {%1}) : ?
  %6 = spread({true}, %4) : ?
  return %6
}
)",
     Prelude::xpcall_failed},
    {Prelude::xpcall_failed, R"(graph xpcall(%0 f: ?, %1 handler: ?, %2 ...: ?) variadic {
  %3 = guard(true) : ?
  %4 = call(%0, %2) : ?
  %5 = keep({}, {%1}) : ?
  %6 = result(%4, 0) : ?
  %7 = call(handled, {handled, %1, 214, %6}) : ?
  %8 = result(%7, 0) : ?
  return {false, %8}
}
)"},
    {Prelude::handled, R"(graph xpcall(%0 self: ?, %1 handler: ?, %2 left: ?, %3 error: ?) {
  %4 = guard(true) : ?
  %5 = call(%1, {%3}) : ?
  %6 = keep({}, {%0, %1, %2}) : ?
  %7 = result(%5, 0) : ?
  return {%7}
}
)",
     Prelude::handled_failed},
    {Prelude::handled_failed, R"(graph xpcall(%0 self: ?, %1 handler: ?, %2 left: ?, %3 error: ?) {
  graph again(%20 self: ?, %21 handler: ?, %22 left: ?, %23 error: ?) {
    %24 = sub(%22, 1) : ?
    %25 = call(%20, {%20, %21, %24, %23}) : ?
    return %25
  }
  graph given_up() {
    return {"error in error handling"}
  }
  %4 = guard(true) : ?
  %5 = call(%1, {%3}) : ?
  %6 = keep({}, {%0, %1, %2}) : ?
  %7 = result(%5, 0) : ?
  %8 = less(0, %2) : ?
  %9 = branch(%8, @again, {%0, %1, %2, %7}, @given_up, {}) : ?
  return %9
}
)"},
    {Prelude::error, R"(graph error(%0 value: ?, %1 level: ?) {
  %2 = raise(%0, %1) : ?
  %3 = keep({}, {%0}) : ?
  return {}
}
)"},
    {Prelude::vjp, R"(graph vjp(%0 f: ?, %1 positions: ?, %2 parameters: ?, %3 ...: ?) variadic {
  graph pull(%20 context: ?, %21 r: ?, %22 ...: ?) captures 2 variadic {
    %23 = reset({%20}) : ?
    %24 = pull(%21, %22) : ?
    %25 = give_out(%20, %24) : ?
    return %25
  }
  %4 = new_context(%2) : ?
  %5 = mark_arguments(%4, %1, %3) : ?
  %6 = j_call({%4}, %0, %5) : ?
  %7 = %6[0] : ?
  %8 = %6[1] : ?
  %9 = unmark(%4, %7) : ?
  %10 = closure(@pull, {%4, %8}) : ?
  %11 = spread({%10, %4}, %9) : ?
  return %11
}
)"},
    {Prelude::derivative,
     R"(graph derivative(%0 name: ?, %1 f: ?, %2 positions: ?, %3 parameters: ?, %4 ...: ?) variadic {
  %5 = new_context(%3) : ?
  %6 = mark_arguments(%5, %2, %4) : ?
  %7 = j_call({%5}, %1, %6) : ?
  %8 = %7[0] : ?
  %9 = %7[1] : ?
  %10 = unmark(%5, %8) : ?
  %11 = seed(%0, %10) : ?
  %12 = result(%10, 0) : ?
  %13 = box_of(%5, %12) : ?
  %14 = shadow_add(%13, 0, %11) : ?
  %15 = unless(%13, %11) : ?
  %16 = pull(%9, {%15}) : ?
  %17 = give_out(%5, %16) : ?
  %18 = list_length(%10) : ?
  %19 = list_concat(%10, %17) : ?
  %20 = spread({%5, %18}, %19) : ?
  return %20
}
)"},
    {Prelude::gradient, R"(graph gradient(%0 name: ?, %1 f: ?, %2 position: ?, %3 ...: ?) variadic {
  %4 = new_context(nil) : ?
  %5 = mark_arguments(%4, %2, %3) : ?
  %6 = j_call({%4}, %1, %5) : ?
  %7 = %6[0] : ?
  %8 = %6[1] : ?
  %9 = unmark(%4, %7) : ?
  %10 = seed(%0, %9) : ?
  %11 = result(%9, 0) : ?
  %12 = box_of(%4, %11) : ?
  %13 = shadow_add(%12, 0, %10) : ?
  %14 = unless(%12, %10) : ?
  %15 = pull(%8, {%14}) : ?
  %16 = give_out(%4, %15) : ?
  %17 = result(%9, 0) : ?
  %18 = result(%16, %2) : ?
  return {%17, %18}
}
)"},
    {Prelude::custom, R"(graph custom_vjp(%0 f: ?, %1 back: ?, %2 ...: ?) variadic {
  %3 = custom_call(%0, %1, %2) : ?
  return %3
}
)"},
    {Prelude::checkpoint, R"(graph checkpoint(%0 f: ?, %1 again: ?, %2 ...: ?) variadic {
  %3 = checkpoint_call(%0, %1, %2) : ?
  return %3
}
)"},
    {Prelude::batched, R"(graph batched(%0 size: ?, %1 f: ?, %2 ...: ?) variadic {
  %3 = batched(%0, %1) : ?
  %4 = call(%3, %2) : ?
  return %4
}
)"},
    {Prelude::coroutine, R"(graph coroutine(%0 f: ?, %1 ...: ?) variadic {
  %2 = call(%0, %1) : ?
  return %2
}
)"},
    {Prelude::resume, R"(graph coroutine.resume(%0 ...: ?) variadic {
  %1 = guard(true) : ?
  %2 = call(go_on, %0) : ?
  %3 = spread({true}, %2) : ?
  return %3
}
)",
     Prelude::resume_failed},
    {Prelude::resume_failed, R"(graph coroutine.resume(%0 ...: ?) variadic {
  %1 = guard(true) : ?
  %2 = call(go_on, %0) : ?
  %3 = result(%2, 0) : ?
  return {false, %3}
}
)"},
    {Prelude::wrap, R"(graph coroutine.wrap(%0 coroutine: ?, %1 ...: ?) captures 1 variadic {
  %2 = guard(true) : ?
  %3 = spread({%0}, %1) : ?
  %4 = call(go_on, %3) : ?
  return %4
}
)"},
    {Prelude::resume_back,
     R"(graph coroutine.resume(%0 coroutine: ?, %1 k: ?, %2 order: ?, %3 ...: ?) captures 3 variadic {
  %4 = backward(%0, %1, %2) : ?
  %5 = call(advance, {%4, %1}) : ?
  %6 = spread({%4}, %3) : ?
  %7 = call(go_on, %6) : ?
  %8 = spread({nil}, %7) : ?
  return %8
}
)"},
    {Prelude::yield_back, R"(graph coroutine(%0 ...: ?) variadic {
  %1 = call(yield, %0) : ?
  return %1
}
)"},
    {Prelude::reversed, R"(graph coroutine(%0 r: ?, %1 ...: ?) captures 1 variadic {
  %2 = pull(%0, %1) : ?
  %3 = results_from(%2, 1) : ?
  return %3
}
)"},
    {Prelude::advance, R"(graph coroutine.resume(%0 coroutine: ?, %1 k: ?) {
  %2 = call(go_on, {%0}) : ?
  %3 = call(advance, {%0, %1}) : ?
  return {}
}
)"},
};

constexpr bool in_order() {
    for (size_t i = 0; i < std::size(kRows); ++i)
        if (kRows[i].which != static_cast<Prelude>(i)) return false;
    return std::size(kRows) == static_cast<size_t>(Prelude::count);
}
static_assert(in_order());

Value native(const std::string& name) {
    using Kind = NativeFunction::Kind;
    static constexpr std::pair<std::string_view, Kind> kKinds[] = {
        {"go_on", Kind::go_on}, {"advance", Kind::advance}, {"yield", Kind::yield}};
    for (const auto& [known, kind] : kKinds)
        if (known == name) return make_object<NativeFunction>(kind, Value());
    if (name == "handled") {
        const OperatorFunction& handled = prelude(Prelude::handled);
        return make_object<Closure>(*handled.function, handled.owner, Values());
    }
    return {};
}

}  // namespace

const OperatorFunction& prelude(Prelude which) {
    struct Made {
        std::once_flag once;
        OperatorFunction function;
    };
    static std::array<Made, std::size(kRows)> functions;
    const auto at = static_cast<size_t>(which);
    Made& made = functions[at];
    std::call_once(made.once, [&] {
        const ir::Vocabulary vocabulary{.primitives = &lua::language(), .function = native};
        std::shared_ptr<const ir::Graph> graph = ir::parse(kRows[at].text, vocabulary, "prelude").graph;
        made.function = {&function_of(*graph), graph};
        made.function.function->keeps_caller = which == Prelude::wrap;
        if (kRows[at].failed != Prelude::count) made.function.function->failed = &prelude(kRows[at].failed);
    });
    return made.function;
}

}  // namespace lunaria::vm
