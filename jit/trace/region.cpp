#include "jit/trace/region.h"
#include "jit/trace/undivided.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "core/base/log.h"
#include "core/ir/builder.h"
#include "core/ir/printer.h"
#include "core/run/placement.h"

namespace lunaria::trace {

namespace {

constexpr size_t kLeast = 2;   // least number of operators for a graph
constexpr size_t kSizes = 32;  // number of input sizes for which an open region is kept compiled
// The run for the same sizes in which an open region is compiled: where compiling has to pay, most sizes come too
// rarely.
constexpr int kSizedRun = 2, kSizedRunToPay = 8;

bool uses_any(const Step& step, const std::unordered_set<int32_t>& slots) {
    bool found = false;
    for_each_slot(step, [&](int32_t slot) { found |= slots.contains(slot); });
    return found;
}

// Whether the step needs no result of an operator before it; `defined`: the slots of those results.
bool waits_for_nothing(const Step& step, const std::unordered_set<int32_t>& defined) {
    if (step.kind == Step::Kind::size) return !uses_any(step, defined);
    // A tensor whose type is decided on may be the result of an operator.
    if (step.kind == Step::Kind::is) return !step.expected[0].typed;
    return step.kind <= Step::Kind::is || step.kind == Step::Kind::number || step.kind == Step::Kind::scalar;
}

bool is_tensor_operator(const Step& step) {
    if (step.kind != Step::Kind::op || step.effect || step.alone || step.expected.empty()) return false;
    return std::all_of(step.expected.begin(), step.expected.end(),
                       [](const Expected& e) { return e.what == Expected::What::tensor; });
}

// Whether the step writes into tensors and has no new result.
bool is_writer(const Step& step) {
    return step.kind == Step::Kind::op && step.effect && !step.args().empty() &&
           std::all_of(step.expected.begin(), step.expected.end(),
                       [](const Expected& e) { return e.what == Expected::What::same; });
}

// Adds the slots that a writer may write into: its first operand, and everything the region gets from elsewhere.
void add_written(const Step& step, const std::unordered_set<int32_t>& defined, std::unordered_set<int32_t>& written) {
    for_each_slot(step.args()[0], [&](int32_t slot) { written.insert(slot); });
    for_each_slot(step, [&](int32_t slot) {
        if (!defined.contains(slot)) written.insert(slot);
    });
}

class Builder {
  public:
    Builder(Block& block, const Region& region, std::span<const TensorType> types, std::span<const Value> numbers,
            ir::Graph& graph)
        : block_(block), region_(region), types_(types), graph_(graph), builder_(graph) {
        for (size_t k = 0; k < numbers.size(); ++k) nodes_.emplace(region.numbers[k], numbers[k]);
    }

    // False: an operator does not fit; it is marked.
    bool build() {
        for (size_t k = 0; k < region_.inputs.size(); ++k)
            nodes_.emplace(region_.inputs[k], Value(graph_.add_parameter("x" + std::to_string(region_.inputs[k]),
                                                                         ir::NodeType::of(types_[k]))));
        for (size_t i = region_.begin; i < region_.end; ++i) {
            Step& step = block_.steps[i];
            if (step.kind != Step::Kind::op || step.effect) continue;
            std::vector<Value> args;
            for (const Value& v : step.args()) args.push_back(value(v));
            builder_.span = step.span();
            if (is_undivided(step)) {
                nodes_.emplace(step.expected[0].slot, undivided(builder_, step, args));
                continue;
            }
            step.alone = true;
            const Value node = builder_.emit(step.op(), args);
            for (size_t k = 0; k < step.expected.size(); ++k) {
                const Expected& e = step.expected[k];
                const Value result = step.list ? builder_.item(node, k) : node;
                if (!result.is_node() || result.node()->type.kind != ir::NodeType::Kind::tensor) return false;
                const TensorType& type = result.node()->type.tensor;
                const bool fits =
                    e.open ? type.dtype == e.type.dtype && type.shape.rank() == e.type.shape.rank() : type == e.type;
                if (!fits) return false;
                nodes_.emplace(e.slot, result);
            }
            step.alone = false;
        }
        std::vector<Value> results;
        for (int32_t slot : region_.outputs) results.push_back(nodes_.at(slot));
        graph_.result = Value::list(std::move(results));
        return true;
    }

    const std::unordered_map<int32_t, Value>& nodes() const { return nodes_; }  // by slot

  private:
    Value value(const Value& operand) {
        return with_leaves(operand, [&](const Value& v) {
            if (v.is_node()) return nodes_.at(v.node()->slot);
            return v.is_tensor() ? Value(graph_.add_constant(v)) : v;
        });
    }

    Block& block_;
    const Region& region_;
    std::span<const TensorType> types_;
    ir::Graph& graph_;
    ir::GraphBuilder builder_;
    std::unordered_map<int32_t, Value> nodes_;
};

constexpr int64_t kLargeGradients = 4 << 20;  // bytes; below, one call for all is faster

size_t position_of(const std::vector<int32_t>& slots, int32_t slot) {
    return static_cast<size_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
}

// Finds the writers that can run item by item: steps of optimizers, each list of which has an item for every parameter.
void split_writers(const Block& block, Region& region) {
    region.early.clear();
    std::unordered_map<int32_t, int> uses;  // by writers
    for (size_t i : region.last) for_each_slot(block.steps[i], [&](int32_t slot) { ++uses[slot]; });
    for (size_t i : region.last) {
        const Step& step = block.steps[i];
        const size_t count = step.args()[0].is_list() ? step.args()[0].items().size() : 0;
        if (!step.op().is_itemwise || step.op().view_fn || !step.expected.empty() || count < 2) continue;
        std::vector<Region::Early> items(count);
        bool fits = true;
        int64_t bytes = 0;
        for (size_t k = 0; k < count; ++k) items[k] = {i, k, {}};
        for (const Value& o : step.args()) {
            if (!o.is_list()) {
                for_each_slot(o, [&](int32_t slot) {
                    fits &= !region.types.empty() && position_of(region.inputs, slot) == region.inputs.size() &&
                            position_of(region.outputs, slot) == region.outputs.size();
                });
                continue;
            }
            fits &= o.items().size() == count;
            for (size_t k = 0; fits && k < count; ++k)
                for_each_slot(o.items()[k], [&](int32_t slot) {
                    fits &= uses[slot] == 1;
                    if (size_t at = position_of(region.outputs, slot); at < region.outputs.size()) {
                        fits &= std::find(region.borrowed.begin(), region.borrowed.end(), at) != region.borrowed.end();
                        items[k].use.outputs.push_back(at);
                    } else if (at = position_of(region.inputs, slot); at < region.inputs.size()) {
                        const TensorType& t = region.types[at];
                        if (&o == &step.args()[0]) bytes += t.shape.size() * static_cast<int64_t>(size_of(t.dtype));
                        items[k].use.inputs.push_back(at);
                    }
                });
        }
        if (fits && bytes >= kLargeGradients) region.early.insert(region.early.end(), items.begin(), items.end());
    }
}

void note_types(const Step& step, SlotTypes& types) {
    for (const Expected& e : step.expected) {
        if (e.what == Expected::What::tensor || (e.what == Expected::What::same && e.typed))
            types[e.slot] = {e.type, e.open};
        else if (step.sizes && e.what == Expected::What::number)
            types[e.slot] = {{}, true, true};
        else if (e.what != Expected::What::same && e.slot >= 0)
            types.erase(e.slot);
    }
}

std::vector<graph::EarlyUse> early_uses(const Region& region) {
    std::vector<graph::EarlyUse> uses;
    for (const Region::Early& early : region.early) uses.push_back(early.use);
    return uses;
}

// Collects the parts of a region: its operators, their inputs and outputs, and the slots that end with it.
class Stretch {
  public:
    Stretch(const Block& block, const SlotTypes& types, Region& region)
        : block_(block), types_(types), region_(region) {
        for (size_t i = region.begin; i < region.end; ++i) add(i);
        for (size_t i = region.begin; i < region.end; ++i)
            if (block.steps[i].kind == Step::Kind::op && !block.steps[i].effect) add_outputs(block.steps[i]);
        divide_drops();
    }

  private:
    void add(size_t i) {
        const Step& step = block_.steps[i];
        region_.drops.insert(region_.drops.end(), step.drops.begin(), step.drops.end());
        dropped_.insert(step.drops.begin(), step.drops.end());
        if (step.kind != Step::Kind::op) return region_.first.push_back(i);
        if (step.effect) {
            region_.last.push_back(i);
            return for_each_slot(step, [&](int32_t slot) {
                wanted_.insert(slot);
                if (step.op().view_fn) kept_.insert(slot);
            });
        }
        const bool lays_out = graph::is_layout(step.op());
        region_.lays_out |= lays_out;
        region_.exchanges |= step.op().is_ordered() && !lays_out;
        region_.draws |= step.op().draws() || step.op().expand_fn;
        for_each_slot(step, [&](int32_t slot) { add_input(slot); });
        for (const Expected& e : step.expected) defined_.insert(e.slot);
    }
    void add_input(int32_t slot) {
        if (defined_.contains(slot) || !used_.insert(slot).second) return;
        const SlotType& type = types_.at(slot);
        region_.open |= type.open;
        if (type.number) return region_.numbers.push_back(slot);
        region_.inputs.push_back(slot);
        region_.types.push_back(type.type);
    }
    void add_outputs(const Step& step) {
        for (const Expected& e : step.expected) {
            const bool passes = dropped_.contains(e.slot);
            if (passes && !wanted_.contains(e.slot)) continue;
            if (passes && !kept_.contains(e.slot)) region_.borrowed.push_back(region_.outputs.size());
            region_.outputs.push_back(e.slot);
        }
    }
    // Values that never leave the graph need no dropping.
    void divide_drops() {
        const std::unordered_set<int32_t> leaves(region_.outputs.begin(), region_.outputs.end());
        const auto inner = std::partition(region_.drops.begin(), region_.drops.end(), [&](int32_t slot) {
            return !defined_.contains(slot) || leaves.contains(slot);
        });
        region_.inner_drops.assign(inner, region_.drops.end());
        region_.drops.erase(inner, region_.drops.end());
    }

    const Block& block_;
    const SlotTypes& types_;
    Region& region_;
    // Slots that the last operators need, and slots that they may keep: an assignment shares its value's storage.
    std::unordered_set<int32_t> defined_, used_, dropped_, wanted_, kept_;
};

bool are_one(const Region& a, const Region& b) {
    return a.begin == b.begin && a.end == b.end && a.inputs == b.inputs && a.numbers == b.numbers &&
           a.outputs == b.outputs && a.borrowed == b.borrowed;
}

// The earlier region with the same steps and its compiled forms, if there is one.
std::unique_ptr<Region> known_or(std::unique_ptr<Region> region, Block& block) {
    for (auto& old : block.regions) {
        if (!old || !are_one(*old, *region)) continue;
        // The needs of later steps may have changed.
        old->drops = std::move(region->drops);
        old->inner_drops = std::move(region->inner_drops);
        return std::move(old);
    }
    return region;
}

}  // namespace

void find_regions(Block& block, SlotTypes& types) {
    std::vector<std::unique_ptr<Region>> found;
    std::unique_ptr<Region> region;
    auto close = [&](size_t end) {
        std::unique_ptr<Region> closed = std::move(region);
        if (!closed || closed->operators < kLeast) return;
        closed->end = end;
        const Stretch stretch(block, types, *closed);
        closed = known_or(std::move(closed), block);
        if (!closed->executable && !closed->open) split_writers(block, *closed);
        found.push_back(std::move(closed));
    };
    std::unordered_set<int32_t> defined, written;  // slots that operators of the region define and write into
    for (size_t i = 0; i < block.steps.size(); ++i) {
        const Step& step = block.steps[i];
        note_types(step, types);
        bool fits = waits_for_nothing(step, defined);
        const bool writes = region && is_writer(step);
        fits |= writes;
        if (!fits && is_tensor_operator(step)) {
            fits = true;
            for_each_slot(step, [&](int32_t slot) { fits &= types.contains(slot); });
            if (region && uses_any(step, written)) close(i);
        }
        if (!fits) {
            close(i);
            continue;
        }
        if (!region) {
            if (step.kind != Step::Kind::op) continue;
            region = std::make_unique<Region>();
            region->begin = i;
            defined.clear();
            written.clear();
        }
        if (writes) add_written(step, defined, written);
        if (step.kind != Step::Kind::op || writes) continue;
        ++region->operators;
        for (const Expected& e : step.expected) defined.insert(e.slot);
    }
    close(block.steps.size());
    block.regions = std::move(found);
}

void find_guard_groups(Block& block) {
    block.groups.clear();
    size_t region = 0;
    // The first step of a block may have decided that the block is the right one.
    for (size_t i = 1; i < block.steps.size();) {
        if (region < block.regions.size() && block.regions[region]->begin <= i) {
            Region& stretch = *block.regions[region++];
            stretch.guards = Guards(block.steps, stretch.first);
            i = std::max(i, stretch.end);
            continue;
        }
        size_t end = i;
        std::vector<size_t> asked;
        while (end < block.steps.size() && block.steps[end].kind <= Step::Kind::next) asked.push_back(end++);
        GuardGroup group{i, end, Guards(block.steps, asked), {}};
        i = std::max(i + 1, end);
        if (group.guards.empty()) continue;
        for (size_t k : asked)
            group.drops.insert(group.drops.end(), block.steps[k].drops.begin(), block.steps[k].drops.end());
        block.groups.push_back(std::move(group));
    }
}

namespace {

// The numbers as they were when the region was recorded.
std::vector<Value> examples_of(const Block& block, const Region& region) {
    std::vector<Value> numbers(region.numbers.size());
    for (const Step& step : block.steps)
        for (const Expected& e : step.expected)
            if (const auto k = std::ranges::find(region.numbers, e.slot); e.slot >= 0 && k != region.numbers.end())
                numbers[static_cast<size_t>(k - region.numbers.begin())] = e.constant;
    return numbers;
}

}  // namespace

std::string graph_text(Block& block, const Region& region, bool optimized) {
    ir::Graph graph("region");
    if (!Builder(block, region, region.types, examples_of(block, region), graph).build())
        return "an operator does not fit into a graph\n";
    return optimized ? graph::optimized_text(graph) : ir::print(graph);
}

namespace {

bool compile(Block& block, Region& region, std::span<const TensorType> types, std::span<const Value> numbers,
             bool waits, std::unique_ptr<graph::Executable>& executable) {
    const auto start = std::chrono::steady_clock::now();
    bool fits = true;
    try {
        ir::Graph graph("region");
        fits = Builder(block, region, types, numbers, graph).build();
        if (fits)
            executable = graph::compile(
                graph, {.donations = {}, .borrowed = region.borrowed, .early = early_uses(region), .waits = waits});
    } catch (const Error& e) {
        region.problem = e.what();
        fits = std::none_of(block.steps.begin() + static_cast<ptrdiff_t>(region.begin),
                            block.steps.begin() + static_cast<ptrdiff_t>(region.end),
                            [](const Step& step) { return step.alone; });
    }
    region.failed = !executable;
    if (region.failed && logs(LogTopic::fallbacks))
        log(LogTopic::fallbacks, described(block.steps[region.begin].span(),
                                           str(region.operators, " operators run one by one: ", region.problem)));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    region.seconds += seconds;
    if (executable && logs(LogTopic::compiles))
        log(LogTopic::compiles, described(block.steps[region.begin].span(),
                                          str(region.operators, " operators as one graph in ", seconds * 1e3, " ms")));
    return fits;
}

}  // namespace

bool compile(Block& block, Region& region, bool waits) {
    return compile(block, region, region.types, {}, waits, region.executable);
}

bool is_divided(const Region& region, std::span<const Tensor> inputs) {
    return region.lays_out || (has_places() && std::ranges::any_of(inputs, [](const Tensor& t) {
                                   return runs_whole_operators(t.device());
                               }));
}

bool run_divided(Block& block, Region& region, std::span<const Tensor> inputs, std::span<const Value> numbers,
                 std::span<Tensor> outputs, const std::function<void()>& last) {
    if (!region.divided) region.divided = graph::make_divided();
    if (!region.divided) return false;
    const std::function<std::unique_ptr<ir::Graph>()> make = [&]() -> std::unique_ptr<ir::Graph> {
        std::vector<TensorType> types;
        for (const Tensor& t : inputs) types.push_back({t.dtype(), t.shape()});
        auto graph = std::make_unique<ir::Graph>("region");
        Builder builder(block, region, types, numbers, *graph);
        if (!builder.build()) return nullptr;
        region.divided_nodes.clear();
        for (const auto& [slot, value] : builder.nodes())
            if (value.is_node()) region.divided_nodes[slot] = value.node()->id;
        return graph;
    };
    return region.divided->run({inputs, numbers, make}, outputs, last);
}

namespace {

void add_layouts(const Block& block, std::unordered_map<int32_t, const ir::Node*> nodes,
                 std::unordered_map<const ir::Node*, std::string>& texts) {
    for (const Step& step : block.steps)
        for (const Expected& e : step.expected)
            if (e.node && e.slot >= 0 && e.what != Expected::What::same) nodes[e.slot] = e.node;
    for (const auto& region : block.regions) {
        if (!region->divided) continue;
        for (const auto& [slot, id] : region->divided_nodes)
            if (const auto at = nodes.find(slot); at != nodes.end())
                if (std::string text = region->divided->type_text(id); !text.empty())
                    texts[at->second] = std::move(text);
    }
    for (const auto& next : block.next) add_layouts(*next, nodes, texts);
}

}  // namespace

std::unordered_map<const ir::Node*, std::string> layouts_of(const Tree& tree) {
    std::unordered_map<const ir::Node*, std::string> texts;
    add_layouts(tree.root, {}, texts);
    return texts;
}

const graph::Executable* place(Block& block, Region& region, std::span<const Tensor> inputs, bool waits) {
    if (region.executable && region.executable->is_worth_code()) compile(block, region);
    if (!region.executable || !has_places()) return region.executable.get();
    const auto placed = std::ranges::find_if_not(inputs, is_traveller);
    Device* const wanted = placed == inputs.end() ? current_place() : placed->device();
    if (region.executable->place() == wanted) return region.executable.get();
    std::swap(region.executable, region.elsewhere);
    if (region.executable && region.executable->place() == wanted) return region.executable.get();
    const PlaceScope scope(wanted);
    region.executable.reset();
    compile(block, region, region.types, {}, waits, region.executable);
    if (!region.executable) std::swap(region.executable, region.elsewhere);
    region.failed = false;
    return region.executable.get();
}

const graph::Executable* executable_of(Block& block, Region& region, std::span<const Tensor> inputs,
                                       std::span<const Value> numbers, bool waits) {
    auto fits = [&](const Region::Sized& one) {
        if (!std::ranges::equal(one.numbers, numbers, identical)) return false;
        for (size_t i = 0; i < inputs.size(); ++i)
            if (!(one.shapes[i] == inputs[i].shape())) return false;
        return true;
    };
    auto& list = region.sized;
    auto found = std::find_if(list.begin(), list.end(), fits);
    if (found == list.end()) {
        if (list.size() == kSizes) list.pop_back();
        Region::Sized one;
        for (const Tensor& t : inputs) one.shapes.push_back(t.shape());
        one.numbers.assign(numbers.begin(), numbers.end());
        list.push_back(std::move(one));
        found = list.end() - 1;
    }
    std::rotate(list.begin(), found, found + 1);
    Region::Sized& one = list.front();
    const bool worth = one.executable && one.executable->is_worth_code();
    if (worth || (!one.executable && ++one.runs >= (waits ? kSizedRunToPay : kSizedRun))) {
        std::vector<TensorType> types;
        for (const Tensor& t : inputs) types.push_back({t.dtype(), t.shape()});
        compile(block, region, types, numbers, waits && !worth, one.executable);
    }
    return one.executable.get();
}

}  // namespace lunaria::trace
