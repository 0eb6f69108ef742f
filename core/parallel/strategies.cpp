#include "core/parallel/strategies.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

constexpr const char* kWhere = "parallel";

int axis_with(const Use& use, int letter) {
    const auto found = std::ranges::find(use.letters, letter);
    return found == use.letters.end() ? -1 : static_cast<int>(found - use.letters.begin());
}

// The operand through which incomplete sums pass where one does: the only one, or the first that is no parameter.
int passing_operand(const Program& program, const ProgramOperator& op) {
    for (size_t i = 0; i < op.operands.size(); ++i)
        if (op.operands[i].is_linear && !program.tensors[static_cast<size_t>(op.operands[i].tensor)].is_parameter)
            return static_cast<int>(i);
    return -1;
}

// All lists of `count` of these values.
std::vector<Cuts> all_lists(const std::vector<int>& values, size_t count) {
    std::vector<Cuts> lists{{}};
    for (size_t i = 0; i < count; ++i) {
        std::vector<Cuts> longer;
        for (const Cuts& list : lists)
            for (int value : values) {
                longer.push_back(list);
                longer.back().push_back(value);
            }
        lists = std::move(longer);
    }
    return lists;
}

double elements_of(const std::vector<int64_t>& shape) {
    double n = 1;
    for (int64_t d : shape) n *= static_cast<double>(d);
    return n;
}

}  // namespace

const char* name_of(Conversion kind) {
    constexpr const char* kNames[] = {"slice", "reduce_scatter", "all_to_all", "all_reduce", "all_gather"};
    return kNames[static_cast<int>(kind)];
}

ProgramIndex::ProgramIndex(const Program& p) : program(p) {
    producer.assign(p.tensors.size(), -1);
    uses.assign(p.tensors.size(), 0);
    readers.resize(p.tensors.size());
    for (size_t i = 0; i < p.operators.size(); ++i) {
        const ProgramOperator& op = p.operators[i];
        for (size_t k = 0; k < op.operands.size(); ++k) {
            const auto t = static_cast<size_t>(op.operands[k].tensor);
            ++uses[t];
            readers[t].push_back({static_cast<int>(i), k});
        }
        for (const Use& use : op.results) producer[static_cast<size_t>(use.tensor)] = static_cast<int>(i);
    }
    std::map<std::string, int> known;
    for (const ProgramOperator& op : p.operators)
        kind.push_back(known.try_emplace(text_of(op), static_cast<int>(known.size())).first->second);
    // Layers with the same kinds in the same order stand for one another; a first layer may differ in some.
    first.resize(p.operators.size());
    size_t before = 0;  // begin of the layer before
    for (size_t i = 0; i < p.operators.size();) {
        size_t end = i + 1;
        const int layer = p.operators[i].layer;
        while (end < p.operators.size() && layer >= 0 && p.operators[end].layer == layer) ++end;
        const bool follows = layer >= 1 && i > 0 && p.operators[i - 1].layer == layer - 1 && end - i == i - before;
        for (size_t k = i; k < end; ++k) {
            const size_t same = before + (k - i);
            first[k] = follows && kind[k] == kind[same] ? first[same] : static_cast<int>(k);
        }
        before = i;
        i = end;
    }
}

bool ProgramIndex::is_inside(const ProgramOperator& op, int tensor) const {
    const int maker = producer[static_cast<size_t>(tensor)];
    return op.layer >= 0 && maker >= 0 && program.operators[static_cast<size_t>(maker)].layer == op.layer;
}

// Everything that ways and costs depend on.
std::string ProgramIndex::text_of(const ProgramOperator& op) const {
    std::string text = op.name;
    const auto add = [&](auto... numbers) { ((text += ' ', text += std::to_string(numbers)), ...); };
    for (const Letter& l : op.letters)
        add(l.size, l.can_be_cut, l.must_divide, l.grain, l.merges, l.spreads, l.halo, l.is_batch);
    add(op.is_jointly_linear, op.only_moves, op.is_of_parameters, op.flops, op.layer >= 0, op.operands.size());
    for (const auto* list : {&op.operands, &op.results})
        for (const Use& use : *list) {
            const auto at = static_cast<size_t>(use.tensor);
            const ProgramTensor& t = program.tensors[at];
            add(use.is_linear, t.bytes_per_element, t.is_parameter, t.needs_gradient, uses[at] > 1,
                is_inside(op, use.tensor));
            for (int letter : use.letters) add(letter);
            text += ':';
            for (int64_t d : t.shape) add(d);
        }
    return text;
}

Strategies::Strategies(const ProgramIndex& index, MeshAxes mesh, const Cluster& cluster, PlanSettings settings)
    : index_(index), program_(index.program), mesh_(std::move(mesh)), cluster_(cluster), settings_(settings) {
    fused_ = cluster;
    fused_.collective_seconds = 0;
    for (LinkLevel& level : fused_.levels) level.latency = 0;
    for (size_t i = 0; i < program_.operators.size(); ++i) {
        const ProgramOperator& op = program_.operators[i];
        const auto [entry, is_new] = kinds_.try_emplace(index.kind[i]);
        OperatorKind& kind = entry->second;
        if (is_new) kind = kind_of(op);
        const auto first = static_cast<size_t>(index.first[i]);
        if (settings_.ties_layers && first < i) {
            operators_.push_back(operators_[first]);
            problem_.repeat(operators_[first].variable, kind.seconds, kind.bytes);
        } else {
            operators_.push_back({&kind, problem_.add_variable(kind.seconds, kind.bytes)});
        }
    }
    for (size_t t = 0; t < program_.tensors.size(); ++t) add_tensor(static_cast<int>(t));
}

RankGroup Strategies::group_of(size_t axis) const {
    RankGroup g{1, mesh_[axis].size};
    for (size_t i = axis + 1; i < mesh_.size(); ++i) g.stride *= mesh_[i].size;
    return g;
}

int64_t Strategies::parts_of(const Cuts& way, int letter) const {
    int64_t parts = 1;
    for (size_t a = 0; a < mesh_.size(); ++a)
        if (way[a] == letter) parts *= mesh_[a].size;
    return parts;
}

bool Strategies::allows(const ProgramOperator& op, const Cuts& way) const {
    for (size_t i = 0; i < op.letters.size(); ++i) {
        const Letter& letter = op.letters[i];
        const int64_t parts = parts_of(way, static_cast<int>(i));
        if (parts == 1) continue;
        const int64_t size = letter.is_batch ? letter.size / settings_.micro_batches : letter.size;
        const bool fits = parts * letter.grain <= size;
        const bool divides = (!letter.must_divide && letter.grain == 1) || size % (parts * letter.grain) == 0;
        if (!letter.can_be_cut || !fits || !divides) return false;
    }
    const bool passes = op.is_jointly_linear || passing_operand(program_, op) >= 0;
    return passes || std::ranges::count(way, kIncomplete) == 0;
}

Strategies::OperatorKind Strategies::kind_of(const ProgramOperator& op) const {
    std::vector<int> choices{kWhole};
    for (size_t i = 0; i < op.letters.size(); ++i)
        if (op.letters[i].can_be_cut && op.letters[i].size > 1) choices.push_back(static_cast<int>(i));
    // Parameters are complete.
    if (op.is_of_parameters ? op.only_moves && settings_.trains : op.is_jointly_linear || op.only_moves)
        choices.push_back(op.is_of_parameters ? kTermBack : kIncomplete);
    OperatorKind kind;
    for (Cuts& way : all_lists(choices, mesh_.size())) {
        if (!allows(op, way)) continue;
        const OperatorCost cost = cost_of(op, way);
        kind.seconds.push_back(cost.forward + cost.backward + cost.communication + cost.gradients);
        kind.bytes.push_back(bytes_of(cost));
        kind.ways.push_back(std::move(way));
        kind.costs.push_back(cost);
    }
    for (size_t i = 0; i < op.operands.size(); ++i) kind.operands.push_back(operand_port(op, i, kind.ways));
    for (const Use& use : op.results) kind.results.push_back(result_port(op, use, kind.ways));
    return kind;
}

Strategies::Port Strategies::operand_port(const ProgramOperator& op, size_t operand,
                                          const std::vector<Cuts>& ways) const {
    const Use& use = op.operands[operand];
    const bool passes = op.is_jointly_linear || passing_operand(program_, op) == static_cast<int>(operand);
    Port port;
    for (const Cuts& way : ways) {
        Cuts forward, gradient;
        for (int letter : way) {
            const int axis = letter >= 0 ? axis_with(use, letter) : -1;
            const bool is_incomplete = letter == kIncomplete;
            const bool sums = (letter >= 0 && axis < 0) || (is_incomplete && !passes) || letter == kTermBack;
            forward.push_back(axis >= 0 ? axis : is_incomplete && passes ? kIncomplete : kWhole);
            gradient.push_back(axis >= 0 ? axis : sums ? kIncomplete : kWhole);
        }
        port.forward.push_back(std::move(forward));
        port.gradient.push_back(std::move(gradient));
    }
    return port;
}

Strategies::Port Strategies::result_port(const ProgramOperator& op, const Use& use,
                                         const std::vector<Cuts>& ways) const {
    Port port;
    for (const Cuts& way : ways) {
        Cuts forward, gradient;
        for (int letter : way) {
            const int axis = letter >= 0 ? axis_with(use, letter) : -1;
            const bool sums =
                letter == kIncomplete || (letter >= 0 && axis < 0 && op.letters[static_cast<size_t>(letter)].merges);
            forward.push_back(axis >= 0 ? axis : sums ? kIncomplete : kWhole);
            gradient.push_back(axis >= 0 ? axis : letter == kTermBack ? kIncomplete : kWhole);
        }
        port.forward.push_back(std::move(forward));
        port.gradient.push_back(std::move(gradient));
    }
    return port;
}

double Strategies::local_bytes(int tensor, const Cuts& cuts) const {
    const ProgramTensor& t = program_.tensors[static_cast<size_t>(tensor)];
    double bytes = t.bytes_per_element;
    for (size_t d = 0; d < t.shape.size(); ++d) {
        const int64_t parts = parts_of(cuts, static_cast<int>(d));
        bytes *= static_cast<double>((t.shape[d] + parts - 1) / parts);
    }
    return bytes;
}

double Strategies::inside_seconds(const ProgramOperator& op, const Cuts& way) const {
    double seconds = 0;
    const Use* largest = nullptr;
    double most = -1;
    for (const auto* uses : {&op.operands, &op.results})
        for (const Use& use : *uses)
            if (const double n = elements_of(program_.tensors[static_cast<size_t>(use.tensor)].shape); n > most)
                most = n, largest = &use;
    if (!largest) return 0;
    Cuts cuts;
    for (int letter : way) cuts.push_back(letter >= 0 ? axis_with(*largest, letter) : kWhole);
    const double bytes = local_bytes(largest->tensor, cuts);
    const auto turns = static_cast<double>(settings_.micro_batches);
    const double passes = settings_.trains ? 3 : 2;
    for (size_t a = 0; a < way.size(); ++a) {
        if (way[a] < 0) continue;
        const Letter& letter = op.letters[static_cast<size_t>(way[a])];
        const int64_t parts = parts_of(way, way[a]);
        const auto local = static_cast<double>((letter.size + parts - 1) / parts);
        if (letter.spreads) {
            const double rows = bytes / local / turns;
            seconds += passes * turns * all_reduce_seconds(cluster_, group_of(a), rows);
        }
        if (letter.halo > 0) {
            const double edge = bytes / local * static_cast<double>(letter.halo) / turns;
            seconds += (passes - 1) * turns * send_seconds(cluster_, group_of(a).stride, edge);
        }
    }
    return seconds;
}

OperatorCost Strategies::cost_of(const ProgramOperator& op, const Cuts& way) const {
    OperatorCost cost;
    double share = 1, bytes = 0;
    for (size_t i = 0; i < op.letters.size(); ++i) {
        const int64_t parts = parts_of(way, static_cast<int>(i)), size = op.letters[i].size;
        if (parts > 1) share *= static_cast<double>((size + parts - 1) / parts) / static_cast<double>(size);
    }
    const auto cuts_of = [&](const Use& use) {
        Cuts cuts;
        for (int letter : way) cuts.push_back(letter >= 0 ? axis_with(use, letter) : kWhole);
        return cuts;
    };
    int with_gradient = 0;
    for (const Use& use : op.operands) {
        bytes += local_bytes(use.tensor, cuts_of(use));
        with_gradient += tensor_of(use).needs_gradient;
    }
    for (const Use& use : op.results) bytes += local_bytes(use.tensor, cuts_of(use));
    if (!op.only_moves) {
        const auto starts = static_cast<double>(settings_.micro_batches) * cluster_.operator_seconds;
        const double work = std::max(share * op.flops / cluster_.flops_per_second, bytes / cluster_.bytes_per_second);
        cost.forward = work + starts;
        const double times = op.flops > 0 ? with_gradient : with_gradient > 0 ? 1.5 : 0;
        if (settings_.trains) cost.backward = times * work + std::ceil(times) * starts;
        if (settings_.trains && settings_.remakes && op.layer >= 0) cost.backward += cost.forward;
    }
    cost.communication = inside_seconds(op, way);
    for (size_t i = 0; i < op.operands.size(); ++i) {
        const Use& use = op.operands[i];
        const auto at = static_cast<size_t>(use.tensor);
        if (program_.tensors[at].is_parameter) {
            if (index_.uses[at] > 1) continue;
            Cuts gradient;
            for (int letter : way)
                gradient.push_back(letter == kTermBack           ? kIncomplete
                                   : letter < 0                  ? kWhole
                                   : axis_with(use, letter) >= 0 ? axis_with(use, letter)
                                                                 : kIncomplete);
            add_parameter_cost(cost, use.tensor, cuts_of(use), gradient);
        }
    }
    if (settings_.trains) add_kept_bytes(cost, op, way);
    if (cost.gradients > 0) cost.gradients = std::max(0.0, cost.gradients - cluster_.hidden * cost.backward);
    return cost;
}

// Operands that the derivative needs: those in which the operator is not linear, or that are factors of another one
// with a gradient.
void Strategies::add_kept_bytes(OperatorCost& cost, const ProgramOperator& op, const Cuts& way) const {
    if (op.only_moves || op.is_jointly_linear) return;
    int with_gradient = 0;
    for (const Use& use : op.operands) with_gradient += tensor_of(use).needs_gradient;
    for (const Use& use : op.operands) {
        const ProgramTensor& t = tensor_of(use);
        const int others = with_gradient - (t.needs_gradient ? 1 : 0);
        if (t.is_parameter || with_gradient == 0 || (use.is_linear && others == 0)) continue;
        const bool is_inside = index_.is_inside(op, use.tensor);
        Cuts cuts;
        for (int letter : way) cuts.push_back(letter >= 0 ? axis_with(use, letter) : kWhole);
        (settings_.remakes && is_inside ? cost.made_again_bytes : cost.kept_bytes) += local_bytes(use.tensor, cuts);
    }
}

// Gradients of many parameters are summed at once, so that starting it counts for nothing here. They go from the
// nearest axis of the mesh to the farthest, each of which moves only what the ranks of the nearer ones share out.
void Strategies::add_parameter_cost(OperatorCost& cost, int tensor, const Cuts& cuts, const Cuts& gradient) const {
    const auto width = static_cast<double>(program_.tensors[static_cast<size_t>(tensor)].bytes_per_element);
    const double weight = local_bytes(tensor, cuts), elements = weight / width;
    if (!settings_.trains) {
        cost.state_bytes += weight;
        return;
    }
    double bytes = elements * settings_.gradient_bytes, weights = weight, ranks = 1;
    for (size_t a = mesh_.size(); a-- > 0;) {
        if (gradient[a] != kIncomplete) continue;
        const RankGroup g = group_of(a);
        // Ranks that do not keep all gradients sum those of every micro-batch; without all weights they gather them
        // for both passes of each.
        const auto turns = static_cast<double>(settings_.micro_batches);
        cost.gradients += (settings_.level >= 2 ? turns : 1) * reduce_scatter_seconds(fused_, g, bytes) +
                          (settings_.level == 3 ? 2 * turns : 1) *
                              all_gather_seconds(fused_, g, settings_.level > 0 ? weights : bytes);
        const auto size = static_cast<double>(g.size);
        bytes /= size, weights /= size, ranks *= size;
    }
    const auto share = [&](int level) { return settings_.level >= level ? 1 / ranks : 1; };
    cost.state_bytes +=
        elements * (width * share(3) + settings_.gradient_bytes * share(2) + settings_.state_bytes * share(1));
}

double Strategies::bytes_of(const OperatorCost& cost) const {
    const auto live = static_cast<double>(std::min(settings_.live, settings_.micro_batches));
    return cost.state_bytes + cost.kept_bytes * live / static_cast<double>(settings_.micro_batches);
}

std::pair<double, double> Strategies::conversion(int tensor, const Cuts& from, const Cuts& to) const {
    if (from == to) return {0, 0};
    const bool is_parameter = program_.tensors[static_cast<size_t>(tensor)].is_parameter;
    const double turns = is_parameter ? 1 : static_cast<double>(settings_.micro_batches);
    double seconds = 0, moved = 0;
    for_each_conversion(from, to, [&](Conversion kind, size_t a, const Cuts& before, const Cuts& after) {
        if (kind == Conversion::slice) return;
        const RankGroup g = group_of(a);
        const double bytes = std::max(local_bytes(tensor, before), local_bytes(tensor, after)) / turns;
        const auto share = static_cast<double>(g.size - 1) / static_cast<double>(g.size);
        double factor = 1;
        switch (kind) {
            case Conversion::all_to_all:
                seconds += turns * all_to_all_seconds(cluster_, g, bytes), factor = 0.5;
                break;
            case Conversion::all_reduce:
                seconds += turns * all_reduce_seconds(cluster_, g, bytes), factor = 2;
                break;
            default:
                seconds += turns * all_gather_seconds(cluster_, g, bytes);
        }
        moved += turns * factor * bytes * share;
    });
    return {seconds, moved};
}

Movement Strategies::movement(const Link& link, size_t i, size_t j) const {
    const ProgramTensor& t = program_.tensors[static_cast<size_t>(link.tensor)];
    const Port &giver = *link.giver.port, &taker = *link.taker.port;
    Movement m{
        link.tensor, link.from, link.to, giver.forward[i], taker.forward[j], taker.gradient[j], giver.gradient[i],
        0,           0,         0};
    const auto [seconds, bytes] = conversion(link.tensor, m.before, m.after);
    m.forward = seconds, m.bytes = bytes;
    if (settings_.trains && t.needs_gradient) {
        const auto back = conversion(link.tensor, m.gradient_before, m.gradient_after);
        m.backward = back.first, m.bytes += back.second;
    }
    if (link.runs_again) m.backward += seconds, m.bytes += bytes;
    return m;
}

void Strategies::add_link(int tensor, int from, int to, End giver, End taker) {
    Link link{tensor, from, to, giver, taker, false};
    const ProgramTensor& t = program_.tensors[static_cast<size_t>(tensor)];
    const auto layer = [&](int op) { return op < 0 ? -1 : program_.operators[static_cast<size_t>(op)].layer; };
    link.runs_again = settings_.remakes && settings_.trains && layer(from) >= 0 && layer(from) == layer(to);
    auto& table = tables_[{giver.port, taker.port, t.shape, t.bytes_per_element, link.runs_again, t.needs_gradient}];
    if (!table) {
        PairTable made{giver.port->forward.size(), taker.port->forward.size(), {}};
        made.cells.reserve(made.rows * made.columns);
        for (size_t i = 0; i < made.rows; ++i)
            for (size_t j = 0; j < made.columns; ++j) {
                const Movement m = movement(link, i, j);
                made.cells.push_back(m.forward + m.backward);
            }
        table = std::make_shared<const PairTable>(std::move(made));
    }
    problem_.add_pair(giver.variable, taker.variable, table);
    links_.push_back(link);
}

Strategies::JunctionKind Strategies::junction_kind(int tensor) const {
    const ProgramTensor& t = program_.tensors[static_cast<size_t>(tensor)];
    std::vector<int> choices{kWhole};
    if (settings_.trains && t.needs_gradient) choices.push_back(kIncomplete);
    for (size_t d = 0; d < t.shape.size(); ++d)
        if (t.shape[d] > 1) choices.push_back(static_cast<int>(d));
    JunctionKind kind;
    for (const Cuts& gradient : all_lists(choices, mesh_.size())) {
        Cuts forward = gradient;
        std::ranges::replace(forward, kIncomplete, kWhole);
        bool fits = true;
        for (size_t d = 0; d < t.shape.size(); ++d) fits = fits && parts_of(forward, static_cast<int>(d)) <= t.shape[d];
        if (!fits) continue;
        OperatorCost cost;
        if (t.is_parameter) add_parameter_cost(cost, tensor, forward, gradient);
        kind.seconds.push_back(cost.gradients);
        kind.bytes.push_back(bytes_of(cost));
        kind.costs.push_back(cost);
        kind.port.forward.push_back(std::move(forward));
        kind.port.gradient.push_back(gradient);
    }
    return kind;
}

// Tensors that operators of equal layers make share a variable, too.
Strategies::Junction Strategies::junction_at(int tensor) {
    const ProgramTensor& t = program_.tensors[static_cast<size_t>(tensor)];
    const auto [entry, is_new] =
        junction_kinds_.try_emplace({t.shape, t.bytes_per_element, t.is_parameter, t.needs_gradient});
    JunctionKind& kind = entry->second;
    if (is_new) kind = junction_kind(tensor);
    const int producer = index_.producer[static_cast<size_t>(tensor)];
    if (settings_.ties_layers && producer >= 0) {
        const int first = index_.first[static_cast<size_t>(producer)];
        const auto& results = program_.operators[static_cast<size_t>(producer)].results;
        const auto at = static_cast<size_t>(std::ranges::find(results, tensor, &Use::tensor) - results.begin());
        const int other = program_.operators[static_cast<size_t>(first)].results[at].tensor;
        const auto known = junctions_.find(other);
        if (known != junctions_.end()) {
            problem_.repeat(known->second.variable, kind.seconds, kind.bytes);
            return known->second;
        }
    }
    // Without ties, layers are eliminated before what lies between them, so that equal ones give equal tables.
    const auto is_outside = [&](const Reading& reading) {
        return !index_.is_inside(program_.operators[static_cast<size_t>(reading.op)], tensor);
    };
    const bool is_between =
        !settings_.ties_layers && std::ranges::any_of(index_.readers[static_cast<size_t>(tensor)], is_outside);
    return {&kind, problem_.add_variable(kind.seconds, kind.bytes, is_between)};
}

// What comes from outside lies as each operator wants it; a parameter with one use belongs to its operator.
void Strategies::add_tensor(int tensor) {
    const auto at = static_cast<size_t>(tensor);
    const int producer = index_.producer[at];
    const auto& readers = index_.readers[at];
    const bool is_given = producer < 0 && (!program_.tensors[at].is_parameter || readers.size() < 2);
    if (readers.empty() || is_given) return;
    End giver;
    if (producer >= 0) {
        const OperatorNode& node = operators_[static_cast<size_t>(producer)];
        const auto& results = program_.operators[static_cast<size_t>(producer)].results;
        const auto use = std::ranges::find(results, tensor, &Use::tensor);
        giver = {node.variable, &node.kind->results[static_cast<size_t>(use - results.begin())]};
    }
    const auto end_of = [&](const Reading& reading) -> End {
        const OperatorNode& node = operators_[static_cast<size_t>(reading.op)];
        return {node.variable, &node.kind->operands[reading.operand]};
    };
    if (readers.size() == 1) return add_link(tensor, producer, readers[0].op, giver, end_of(readers[0]));
    const Junction junction = junction_at(tensor);
    junctions_.emplace(tensor, junction);
    const End middle{junction.variable, &junction.kind->port};
    if (producer >= 0) add_link(tensor, producer, -1, giver, middle);
    for (const Reading& reading : readers) add_link(tensor, -1, reading.op, middle, end_of(reading));
}

ProgramPlan Strategies::plan_of(const Cheapest& found) const {
    ProgramPlan plan;
    plan.mesh = mesh_;
    plan.seconds = found.seconds, plan.bound = found.bound, plan.bytes = found.bytes;
    const auto value = [&](int variable) { return static_cast<size_t>(found.values[static_cast<size_t>(variable)]); };
    plan.tensors.assign(program_.tensors.size(), Cuts(mesh_.size(), kWhole));
    plan.gradients = plan.tensors;
    for (size_t i = 0; i < operators_.size(); ++i) {
        const OperatorKind& kind = *operators_[i].kind;
        const ProgramOperator& op = program_.operators[i];
        const size_t chosen = value(operators_[i].variable);
        plan.cuts.push_back(kind.ways[chosen]);
        plan.costs.push_back(kind.costs[chosen]);
        for (size_t k = 0; k < op.operands.size(); ++k)
            if (const auto at = static_cast<size_t>(op.operands[k].tensor); index_.producer[at] < 0) {
                plan.tensors[at] = kind.operands[k].forward[chosen];
                plan.gradients[at] = kind.operands[k].gradient[chosen];
            }
        for (size_t k = 0; k < op.results.size(); ++k)
            plan.tensors[static_cast<size_t>(op.results[k].tensor)] = kind.results[k].forward[chosen];
    }
    for (const Link& link : links_) {
        const size_t i = value(link.giver.variable), j = value(link.taker.variable);
        const auto at = static_cast<size_t>(link.tensor);
        if (program_.tensors[at].is_parameter) {
            plan.tensors[at] = link.giver.port->forward[i];
            plan.gradients[at] = link.giver.port->gradient[i];
        }
        Movement m = movement(link, i, j);
        if (m.forward + m.backward > 0) plan.movements.push_back(std::move(m));
    }
    for (const auto& [tensor, junction] : junctions_) {
        const OperatorCost& cost = junction.kind->costs[value(junction.variable)];
        plan.shared.gradients += cost.gradients;
        plan.shared.state_bytes += cost.state_bytes;
    }
    return plan;
}

ProgramPlan Strategies::search(double most_bytes, int effort) const {
    const Cheapest found = problem_.solve(most_bytes, effort);
    if (found.values.empty())
        throw memory_error(
            kWhere, str("no division among the ranks of this mesh needs at most ", most_bytes / 1e9, " GB on each"))
            .hint("use more ranks, a sharded optimizer, recomputation or smaller micro-batches");
    return plan_of(found);
}

ProgramPlan Strategies::given(const std::vector<Cuts>& cuts) const {
    if (cuts.size() != operators_.size())
        throw value_error(kWhere, str("cuts of ", cuts.size(), " operators were given for ", operators_.size()));
    Elimination problem = problem_;
    for (size_t i = 0; i < cuts.size(); ++i) {
        const auto found = std::ranges::find(ways(static_cast<int>(i)), cuts[i]);
        if (found == ways(static_cast<int>(i)).end())
            throw value_error(kWhere,
                              str("operator ", i, " (", program_.operators[i].name, ") cannot be cut like that"));
        problem.fix(operators_[i].variable, static_cast<int>(found - ways(static_cast<int>(i)).begin()));
    }
    return plan_of(problem.solve());
}

}  // namespace lunaria::parallel
