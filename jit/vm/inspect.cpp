#include "jit/vm/inspect.h"

#include <algorithm>

#include "jit/vm/handlers.h"

namespace lunaria::vm {

namespace {

// The stop point before the instruction `at`, in the same block; null when there is none.
const Instr* last_stop_point(const Code& code, uint32_t at) {
    uint32_t start = 0;
    for (const Code::Block& block : code.blocks)
        if (block.start <= at) start = std::max(start, block.start);
    for (uint32_t i = at + 1; i-- > start;)
        if (code.instrs[i].run == handle_stop_point) return &code.instrs[i];
    return nullptr;
}

// "J f" and "B f" are the names that a differentiation of f makes.
std::string written_name(std::string name, bool& backward) {
    while (name.starts_with("J ") || name.starts_with("B ")) {
        backward |= name[0] == 'B';
        name.erase(0, 2);
    }
    return name;
}

void add_variables(const Code& code, const Instr& stop, Value* registers, std::vector<FrameVariable>& list) {
    auto read = [&](const Slot& s) { return s.at >= 0 ? &registers[s.at] : nullptr; };
    auto constant = [&](const Slot& s) { return code.constants[static_cast<size_t>(~s.at)]; };
    const Slot& first = code.slots[stop.slots];
    const std::string names(first.at >= 0 ? read(first)->string() : constant(first).string());
    const Slot& values = code.slots[stop.slots + 1];
    size_t begin = 0;
    for (int32_t i = 0; i < values.items; ++i) {
        const size_t end = std::min(names.find(' ', begin), names.size());
        FrameVariable v;
        v.name = names.substr(begin, end - begin);
        begin = end + 1;
        if (v.name.starts_with('^')) {
            v.outer = true;
            v.name.erase(0, 1);
        }
        if (v.name.starts_with('&')) v.name.erase(0, 1);
        const Slot& s = code.slots[static_cast<size_t>(values.at + i)];
        v.place = read(s);
        v.value = v.place ? *v.place : constant(s);
        list.push_back(std::move(v));
    }
}

}  // namespace

void handle_stop_point(Machine& m, const Instr& i) {
    const int line = i.node->span.line;
    if (line > 0 && m.begins_line(line)) m.host().at_line();
}

FrameView Machine::frame_view(size_t index) {
    Frame& frame = frames_[index];
    FrameView view;
    const Code& code = *frame.code;
    if (!code.graph) {
        view.waits = true;
        return view;
    }
    view.function = written_name(code.graph->name, view.backward);
    view.first_line = code.graph->span.line;
    const uint32_t next = index + 1 == frames_.size() ? pc_ : frame.pc;
    const uint32_t at = next > 0 ? next - 1 : 0;
    if (at >= code.instrs.size()) return view;
    if (const ir::Node* node = code.instrs[at].node; node && node->span.line > 0) {
        view.chunk = node->span.chunk;
        view.line = node->span.line;
    }
    if (const Instr* stop = last_stop_point(code, at)) {
        view.complete = true;
        if (view.line == 0) {
            view.chunk = stop->node->span.chunk;
            view.line = stop->node->span.line;
        }
        add_variables(code, *stop, frame.registers, view.variables);
        return view;
    }
    // The remaining arguments, in the function's first block.
    const bool in_first = code.blocks.size() < 2 || at < code.blocks[1].start;
    if (!in_first || view.backward) return view;
    const auto& parameters = code.graph->parameters();
    const size_t hidden = code.graph->order > 0 ? static_cast<size_t>(code.graph->order) + 1 : 0;
    for (size_t i = hidden; i < parameters.size(); ++i) {
        Value& place = frame.registers[code.blocks[0].parameters[i]];
        const std::string& name = parameters[i]->name;
        if (place.is_nil() || name.empty() || name == "_ENV") continue;
        view.variables.push_back({name, i < hidden + code.graph->captures, &place, place});
    }
    return view;
}

}  // namespace lunaria::vm
