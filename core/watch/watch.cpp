#include "core/watch/watch.h"

#include <algorithm>
#include <cmath>

namespace lunaria::watch {

namespace {

template <class F>
void for_each_tensor(std::span<const Value> values, F&& f) {
    for (const Value& v : values) {
        if (v.is_tensor()) f(v.tensor());
        if (v.is_list()) for_each_tensor(std::span<const Value>(v.items()), f);
    }
}

template <class F>
void for_each_tensor(const Value& value, F&& f) {
    for_each_tensor(std::span<const Value>(&value, 1), f);
}

// The place of the parameter with the gradients of an operator that updates parameters; -1: it is another operator.
int gradients_of(const Op& op) {
    if (!op.writes() || !op.is_itemwise) return -1;
    const auto& params = op.signature.params;
    const auto found = std::ranges::find(params, "grads", [](const Param& p) { return std::string_view(p.name); });
    return found == params.end() ? -1 : static_cast<int>(found - params.begin());
}

// Calls f with the tensors that an operator has written: the first operand, and the lists of an optimizer's step beside
// the gradients.
template <class F>
void for_each_written(const Op& op, std::span<const Value> args, F&& f) {
    const int gradients = gradients_of(op);
    for (size_t i = 0; i < args.size(); ++i)
        if (i == 0 || (op.is_itemwise && args[i].is_list() && static_cast<int>(i) != gradients))
            for_each_tensor(args[i], f);
}

bool ends_with_part(std::string_view text, std::string_view part) {
    return text.ends_with(part) && (text.size() == part.size() || text[text.size() - part.size() - 1] == '/');
}

bool begins_with_part(std::string_view text, std::string_view part) {
    return text.starts_with(part) && (text.size() == part.size() || text[part.size()] == '.');
}

bool is_constant(const Node& node) { return node.operands.empty() || node.op->reads_type_only; }

constexpr std::string_view kGradient = "gradient of ", kParameter = "parameter ";

Figures figures_of(const Tensor& t, std::string name, int32_t node) {
    return {std::move(name), node, t.shape(), t.dtype(), has_statistics(t) ? statistics_of(t) : Statistics{}, {}};
}

}  // namespace

std::string Node::name() const {
    const std::string plain = str(op->name(), "-", number);
    return layer.empty() ? plain : str(layer, "/", plain);
}

bool Node::is_called(std::string_view text) const {
    return text == op->name() || begins_with_part(layer, text) || ends_with_part(place, text) || text == name();
}

Watch::Watch(Options options) : Observer(true), options_(std::move(options)) {
    needs_earlier_ = !options_.kept.empty() || std::ranges::any_of(options_.points, &Watchpoint::needs_earlier);
}

void Watch::begin_step(bool is_call) {
    if (std::exchange(in_step_, true)) throw state_error("watch", "a step is under way already");
    is_call_ = is_call;
    ended_.reset();
    ++step_;
    count_ = 0;
    numbers_.assign(numbers_.size(), 0);
    made_count_ = 0;
    seen_.clear();
    running_.clear();
    for (Kept& k : kept_) k.before = std::exchange(k.now, Tensor());
    for (Weight& w : weights_) {
        if (needs_earlier_ && w.writer >= 0) keep_earlier(w);
        w.reader = w.writer = -1;
    }
    wrote_weights_ = false;
    open();
}

void Watch::keep_earlier(Weight& w) {
    if (!w.tensor.device() && w.before && w.before.shape() == w.tensor.shape() && w.before.dtype() == w.tensor.dtype())
        copy_elements(w.tensor, w.before);
    else
        w.before = w.tensor.copy();
}

void Watch::leave_step() {
    close();
    in_step_ = false;
    ended_.reset();
    running_.clear();
    args_ = {};
    result_ = nullptr;
}

void Watch::end_step() {
    if (!in_step_) throw state_error("watch", "no step is under way");
    const std::optional<Error> ended = ended_;
    leave_step();
    if (ended) throw *ended;
    check_weights();
    report_hits();
    report(Event::step);
}

void Watch::report(Event event) {
    if (!options_.report) return;
    struct Reporting {
        explicit Reporting(bool& flag) : flag(flag) { flag = true; }
        ~Reporting() { flag = false; }
        bool& flag;
    } const reporting(is_reporting_);
    try {
        options_.report(event);
    } catch (const Error& e) {
        const bool has_place = event != Event::step && count_ > 0;
        ended_ = has_place ? e.at(nodes_[count_ - 1].place) : e;
        // Without a call that would leave the step, nothing more is watched; the error stays until the step's end.
        if (!is_call_) close();
        throw *ended_;
    }
}

void Watch::report_hits() {
    if (std::exchange(unreported_, 0)) report(Event::hit);
}

void Watch::begin(const Op& op, std::span<const Value> args) {
    if (is_reporting_) return;
    // A compiled function begins a call anew, in Lua, to have its error raised there.
    if (ended_) throw *ended_;
    args_ = {};
    result_ = nullptr;
    const size_t before = unreported_;
    running_.push_back({count_, hits_.size(), overflow(), {}, {}});
    note_weights(args, op.writes());
    if (options_.seeks_origin) look_at_operands(op, args, running_.back());
    check_gradients(op, args);
    // A fault in a gradient stops the program before the update.
    if (unreported_ == before) return;
    Running running = std::move(running_.back());
    running_.pop_back();
    report_hits();
    running_.push_back(std::move(running));
}

// The figures before an operator writes, and operands from outside that are not finite.
void Watch::look_at_operands(const Op& op, std::span<const Value> args, Running& running) {
    if (op.writes()) running.operands = figures_of_operands(args);
    for_each_tensor(args, [&](const Tensor& t) {
        if (origin_of(t).node >= 0 || !seen_.insert(t.body()).second || !is_float(t.dtype())) return;
        if (!glance_at(t).all_finite)
            running.faulty.push_back(figures_of(
                t, t.parameter() ? str(kParameter, t.parameter()->name) : std::string("operand from outside"), -1));
    });
}

void Watch::end(const Op& op, std::span<const Value> args, const Value* result) {
    if (is_reporting_ || running_.empty()) return;
    const Running running = std::move(running_.back());
    running_.pop_back();
    args_ = {};
    result_ = nullptr;
    if (!result) return;
    const bool is_composite = count_ != running.nodes;
    if (!is_composite && op.host_fn) return;
    if (is_composite) {
        note_inner_result(*result, running.nodes);
        note_use(args, op.writes(), static_cast<int32_t>(running.nodes));
    } else {
        note_made(*result, add_node(op, args));
    }
    args_ = args;
    result_ = result;
    operands_ = running.operands;
    add_faulty(running);
    if (is_composite) return;
    check_results(op, args, *result, running);
    if (!options_.kept.empty()) keep(*result);
}

// Operands from outside come before what followed from them.
void Watch::add_faulty(const Running& running) {
    auto place = static_cast<std::ptrdiff_t>(running.hits);
    for (const Figures& faulty : running.faulty)
        for (size_t p = 0; p < options_.points.size(); ++p) {
            const double count = static_cast<double>(faulty.statistics.count - faulty.statistics.finite());
            const auto node = static_cast<int32_t>(running.nodes);
            hits_.insert(hits_.begin() + place++, {p, 0, count, step_, node, faulty, {}, -1, false, {}});
            ++unreported_;
        }
}

void Watch::after() {
    if (is_reporting_ || !running_.empty() || !result_) return;
    // Reports may throw, and what the operator had is gone then, too.
    struct Forget {
        explicit Forget(Watch& w) : watch(w) {}
        ~Forget() {
            watch.args_ = {};
            watch.result_ = nullptr;
        }
        Watch& watch;
    } const forget(*this);
    if (unreported_)
        report_hits();
    else if (options_.reports_nodes)
        report(Event::node);
}

int32_t Watch::next_number(const Op& op) {
    // Operators that a program defines have no place in the registry.
    if (op.id < 0)
        return static_cast<int32_t>(std::ranges::count(nodes_.data(), nodes_.data() + count_, &op, &Node::op));
    const auto id = static_cast<size_t>(op.id);
    if (id >= numbers_.size()) numbers_.resize(id + 1);
    return numbers_[id]++;
}

int32_t Watch::add_node(const Op& op, std::span<const Value> args) {
    if (count_ == nodes_.size()) nodes_.emplace_back();
    Node& node = nodes_[count_];
    node.op = &op;
    node.number = next_number(op);
    node.place = options_.place ? options_.place() : std::string();
    node.layer.clear();
    // Texts keep their memory from step to step.
    size_t count = 0;
    for_each_tensor(args, [&](const Tensor& t) {
        if (count == node.operands.size()) node.operands.emplace_back();
        Origin& origin = node.operands[count++];
        set_origin(origin, t, op.writes());
        const std::string& name = origin.parameter;
        if (const size_t dot = name.rfind('.'); dot != std::string::npos && node.layer.empty())
            node.layer.assign(name, 0, dot);
    });
    node.operands.resize(count);
    node.is_looked_at = !op.view_fn || (!node.operands.empty() && node.operands[0].node >= 0 &&
                                        nodes_[static_cast<size_t>(node.operands[0].node)].is_looked_at);
    // The parameters of an optimizer's step belong to many layers.
    if (op.writes()) node.layer.clear();
    const auto index = static_cast<int32_t>(count_++);
    note_use(args, op.writes(), index);
    if (op.writes()) for_each_written(op, args, [&](const Tensor& t) { note_made(t, index, 0); });
    return index;
}

size_t Watch::row_of(const void* key) const {
    const size_t mask = made_.size() - 1;
    size_t row = (reinterpret_cast<uintptr_t>(key) >> 4) * 0x9e3779b97f4a7c15u >> 32 & mask;
    while (made_[row].step == step_ && made_[row].key != key) row = (row + 1) & mask;
    return row;
}

void Watch::note_made(const Tensor& t, int32_t node, int32_t result) {
    if (2 * (made_count_ + 2) > made_.size()) {
        std::vector<Made> rows = std::exchange(made_, std::vector<Made>(std::max<size_t>(1024, 4 * made_.size())));
        for (const Made& row : rows)
            if (row.step == step_) made_[row_of(row.key)] = row;
    }
    for (const void* key : {static_cast<const void*>(t.body()), static_cast<const void*>(t.raw())}) {
        Made& row = made_[row_of(key)];
        made_count_ += row.step == step_ ? 0 : 1;
        row = {key, t.raw(), t.nbytes(), step_, node, result};
    }
}

void Watch::note_made(const Value& result, int32_t node) {
    int32_t number = 0;
    for_each_tensor(result, [&](const Tensor& t) { note_made(t, node, number++); });
}

const Watch::Made* Watch::made(const Tensor& t, bool by_any_handle) const {
    if (made_.empty() || t.size() == 0) return nullptr;
    // The memory of a tensor that is gone may belong to one that was made elsewhere since.
    const auto fits = [&](const Made& row) {
        return row.step == step_ && row.data == t.raw() && row.bytes == t.nbytes();
    };
    const Made* row = &made_[row_of(t.body())];
    if (!fits(*row) && by_any_handle) row = &made_[row_of(t.raw())];
    return fits(*row) ? row : nullptr;
}

// The result of an operator that is made of others is one of theirs, perhaps by another handle.
void Watch::note_inner_result(const Value& result, size_t first) {
    for_each_tensor(result, [&](const Tensor& t) {
        if (const Made* row = made(t, true); row && row->node >= static_cast<int32_t>(first))
            note_made(t, row->node, row->result);
    });
}

void Watch::set_origin(Origin& origin, const Tensor& t, bool by_any_handle) const {
    const ParameterInfo* info = t.parameter();
    origin.parameter = info ? std::string_view(info->name) : std::string_view();
    const Made* row = made(t, by_any_handle);
    origin.node = row ? row->node : -1;
    origin.result = row ? row->result : 0;
}

Origin Watch::origin_of(const Tensor& t) const {
    Origin origin;
    set_origin(origin, t);
    return origin;
}

void Watch::note_weights(std::span<const Value> args, bool writes) {
    for_each_tensor(args, [&](const Tensor& t) {
        if (!t.parameter() || !t.parameter()->requires_grad) return;
        wrote_weights_ |= writes;
        if (weight_at_.try_emplace(t.body(), weights_.size()).second)
            weights_.push_back({t, needs_earlier_ ? t.copy() : Tensor()});
    });
}

void Watch::note_use(std::span<const Value> args, bool writes, int32_t node) {
    for_each_tensor(args, [&](const Tensor& t) {
        if (!t.parameter()) return;
        const auto found = weight_at_.find(t.body());
        if (found == weight_at_.end()) return;
        Weight& w = weights_[found->second];
        if (w.reader < 0) w.reader = node;
        if (writes) w.writer = node;
        if (!std::exchange(w.is_new, false)) return;
        Subject subject(t, nullptr, false);
        check(
            Target::weight, subject, node, [&] { return str(kParameter, w.name()); }, true);
    });
}

void Watch::check_gradients(const Op& op, std::span<const Value> args) {
    const int at = gradients_of(op);
    if (at < 0 || !args[static_cast<size_t>(at)].is_list() || !args[0].is_list()) return;
    const auto &gradients = args[static_cast<size_t>(at)].items(), &parameters = args[0].items();
    for (size_t i = 0; i < std::min(gradients.size(), parameters.size()); ++i) {
        if (!gradients[i].is_tensor() || !parameters[i].is_tensor()) continue;
        const ParameterInfo* info = parameters[i].tensor().parameter();
        Subject subject(gradients[i].tensor(), nullptr, false);
        const Made* row = made(gradients[i].tensor(), true);
        check(Target::gradient, subject, row ? row->node : -1,
              [&] { return str(kGradient, info ? info->name : std::to_string(i + 1)); });
    }
}

void Watch::check_results(const Op& op, std::span<const Value> args, const Value& result, const Running& running) {
    const auto node = static_cast<int32_t>(count_) - 1;
    // A view has the elements of its operand, which were looked at.
    if (op.view_fn) return;
    const bool flag = options_.overflow && !running.flag && overflow();
    int number = 0;
    const auto look = [&](const Tensor& t) {
        const ParameterInfo* info = op.writes() ? t.parameter() : nullptr;
        const int at = number++;
        if (!is_float(t.dtype())) return;
        Subject subject(t, nullptr, flag);
        const auto what = [&] {
            return info ? str(kParameter, info->name) : str(op.writes() ? "written " : "result ", at);
        };
        for (const Target target : {Target::tensor, Target::activation}) check(target, subject, node, what);
    };
    if (op.writes())
        for_each_written(op, args, look);
    else
        for_each_tensor(result, look);
}

void Watch::check_weights() {
    for (Weight& w : weights_) {
        if (w.node() < 0) continue;
        Subject subject(w.tensor, wrote_weights_ && w.before ? &w.before : nullptr, false);
        check(Target::weight, subject, w.node(), [&] { return str(kParameter, w.name()); });
    }
}

// Whether a result is finite as its operands are, which were looked at when they were made.
bool Watch::preserves(const Watchpoint& point, const Node& node) const {
    return std::ranges::find(point.preserving, node.op) != point.preserving.end() &&
           std::ranges::all_of(node.operands, [&](const Origin& o) {
               return o.node >= 0 && nodes_[static_cast<size_t>(o.node)].is_looked_at;
           });
}

template <class F>
void Watch::check(Target target, Subject& subject, int32_t node, const F& what, bool at_start) {
    for (size_t p = 0; p < options_.points.size(); ++p) {
        const Watchpoint& point = options_.points[p];
        if (point.target != target || point.at_start != at_start) continue;
        const auto is_of = [&] {
            return node >= 0 &&
                   std::ranges::find(point.operators, nodes_[static_cast<size_t>(node)].op) != point.operators.end();
        };
        if (!point.operators.empty() && !is_of()) continue;
        if (!point.preserving.empty() && point.nodes.empty() && node >= 0 &&
            preserves(point, nodes_[static_cast<size_t>(node)]))
            continue;
        // A constant that is zero is meant to be.
        if (point.asks_for_zeros() && node >= 0 && is_constant(nodes_[static_cast<size_t>(node)])) continue;
        if (point.only_matrices && point.nodes.empty() && subject.tensor().rank() < 2) continue;
        const std::optional<Subject::Answer> answer = subject.ask(point);
        if (!answer) continue;
        const std::string name = what();
        if (is_meant(point, node, name)) add_hit(p, *answer, subject, node, name);
    }
}

bool Watch::is_meant(const Watchpoint& point, int32_t node, const std::string& what) const {
    if (point.nodes.empty()) return true;
    std::string_view parameter;
    for (const std::string_view kind : {kGradient, kParameter})
        if (what.starts_with(kind)) parameter = std::string_view(what).substr(kind.size());
    return std::ranges::any_of(point.nodes, [&](const std::string& text) {
        return (!parameter.empty() && begins_with_part(parameter, text)) ||
               (node >= 0 && nodes_[static_cast<size_t>(node)].is_called(text));
    });
}

void Watch::add_hit(size_t point, const Subject::Answer& answer, Subject& subject, int32_t node,
                    const std::string& what) {
    Hit hit;
    hit.point = point;
    hit.question = answer.question;
    hit.value = answer.value;
    hit.step = step_;
    hit.node = node;
    const Tensor& t = subject.tensor();
    hit.tensor = {what, node, t.shape(), t.dtype(), {}, {}};
    ++unreported_;
    const std::string name = node >= 0 ? nodes_[static_cast<size_t>(node)].name() : std::string();
    hit.is_known = !known_.insert(str(point, ' ', name, ' ', what)).second;
    if (hit.is_known) {
        hits_.push_back(std::move(hit));
        return;
    }
    hit.tensor.statistics = subject.statistics();
    if (hit.tensor.statistics.finite() < hit.tensor.statistics.count) hit.element = first_not_finite(subject.tensor());
    if (result_ && node == static_cast<int32_t>(count_) - 1) {
        hit.operands = operands_.empty() ? figures_of_operands(args_, &subject.tensor(), hit.element) : operands_;
        const auto& params = nodes_[static_cast<size_t>(node)].op->signature.params;
        for (size_t i = 0; i < args_.size() && i < params.size(); ++i)
            if (args_[i].is_number()) hit.numbers.emplace_back(params[i].name, args_[i].number());
    }
    hits_.push_back(std::move(hit));
}

std::vector<Figures> Watch::figures_of_operands(std::span<const Value> args, const Tensor* result,
                                                int64_t element) const {
    std::vector<Figures> list;
    for_each_tensor(args, [&](const Tensor& t) {
        const Origin origin = origin_of(t);
        list.push_back(
            figures_of(t, origin.parameter.empty() ? str("operand ", list.size()) : str(kParameter, origin.parameter),
                       origin.node));
        if (element < 0 || is_complex(t.dtype())) return;
        if (t.shape() == result->shape())
            list.back().value = t.at(element);
        else if (t.size() == 1)
            list.back().value = t.at(0);
    });
    return list;
}

std::vector<Figures> Watch::operand_figures() const {
    if (!result_) return {};
    return operands_.empty() ? figures_of_operands(args_) : operands_;
}

std::vector<Figures> Watch::result_figures() const {
    std::vector<Figures> list;
    if (result_)
        for_each_tensor(*result_, [&](const Tensor& t) {
            list.push_back(figures_of(t, str("result ", list.size()), static_cast<int32_t>(count_) - 1));
        });
    return list;
}

std::vector<Tensor> Watch::results() const {
    std::vector<Tensor> list;
    if (result_) for_each_tensor(*result_, [&](const Tensor& t) { list.push_back(t); });
    return list;
}

void Watch::keep(const Value& result) {
    const Node& node = nodes_[count_ - 1];
    if (std::ranges::none_of(options_.kept, [&](const std::string& text) { return node.is_called(text); })) return;
    int number = 0;
    for_each_tensor(result, [&](const Tensor& t) {
        const std::string name = number ? str(node.name(), ":", number) : node.name();
        ++number;
        auto found = std::ranges::find(kept_, name, &Kept::name);
        if (found == kept_.end()) found = kept_.insert(found, {name, {}, {}});
        found->now = t.apart();
    });
}

std::optional<Watch::Kept> Watch::kept(std::string_view name) const {
    for (const Kept& k : kept_)
        if (k.name == name) return k;
    for (const Weight& w : weights_)
        if (w.name() == name) return Kept{w.name(), w.tensor, w.before};
    return {};
}

std::vector<std::string> Watch::kept_names() const {
    std::vector<std::string> names;
    for (const Kept& k : kept_) names.push_back(k.name);
    for (const Weight& w : weights_) names.push_back(w.name());
    return names;
}

}  // namespace lunaria::watch
