#include "core/parallel/planner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

// Equal numbers for operators that do the same.
std::vector<int> kinds_of(const Program& program) {
    std::vector<int> kinds;
    std::map<std::string, int> known;
    for (const ProgramOperator& op : program.operators) {
        std::string text = str(op.name, ' ', op.flops);
        for (const Letter& l : op.letters) text += str(' ', l.size, l.can_be_cut, l.grain, l.merges, l.spreads);
        for (const auto* list : {&op.operands, &op.results})
            for (const Use& use : *list) {
                text += str('|', program.tensors[static_cast<size_t>(use.tensor)].is_parameter);
                for (int letter : use.letters) text += str(' ', letter);
            }
        kinds.push_back(known.try_emplace(text, static_cast<int>(known.size())).first->second);
    }
    return kinds;
}

// Bytes of the tensors that are made before an operator and used from there on, for each operator and the end.
std::vector<double> crossing_bytes(const Program& program) {
    const size_t count = program.operators.size();
    std::vector<double> change(count + 2, 0);
    std::vector<size_t> made(program.tensors.size(), count), last(program.tensors.size(), 0);
    for (size_t i = 0; i < count; ++i) {
        for (const Use& use : program.operators[i].operands) last[static_cast<size_t>(use.tensor)] = i;
        for (const Use& use : program.operators[i].results) made[static_cast<size_t>(use.tensor)] = i;
    }
    for (size_t t = 0; t < program.tensors.size(); ++t) {
        if (made[t] == count || last[t] <= made[t]) continue;
        double bytes = program.tensors[t].bytes_per_element;
        for (int64_t d : program.tensors[t].shape) bytes *= static_cast<double>(d);
        change[made[t] + 1] += bytes;
        change[last[t] + 1] -= bytes;
    }
    std::vector<double> crossing(count + 1, 0);
    double now = 0;
    for (size_t i = 0; i <= count; ++i) crossing[i] = now += change[i];
    return crossing;
}

struct Run {
    size_t begin = 0, period = 0, covered = 0;
};

// The run of repeated operators between two places that covers most, with the shortest period.
Run longest_run(const std::vector<int>& kinds, size_t begin, size_t end) {
    Run best;
    for (size_t period = 3; 2 * period <= end - begin; ++period)
        for (size_t i = begin; i + period < end;) {
            size_t equal = 0;
            while (i + period + equal < end && kinds[i + equal] == kinds[i + period + equal]) ++equal;
            if (equal >= period && equal + period > best.covered) best = {i, period, equal + period};
            i += equal + 1;
        }
    return best;
}

void mark_layers(Program& program, const std::vector<int>& kinds, const std::vector<double>& crossing, size_t begin,
                 size_t end, int& count) {
    const Run run = end > begin ? longest_run(kinds, begin, end) : Run{};
    if (run.period == 0) return;
    // Layers begin where the fewest bytes cross.
    size_t first = run.begin;
    for (size_t i = run.begin; i < run.begin + std::min(run.period, run.covered % run.period + 1); ++i)
        if (crossing[i] < crossing[first]) first = i;
    const size_t layers = (run.begin + run.covered - first) / run.period;
    mark_layers(program, kinds, crossing, begin, first, count);
    for (size_t l = 0; l < layers; ++l, ++count)
        for (size_t i = 0; i < run.period; ++i) program.operators[first + l * run.period + i].layer = count;
    mark_layers(program, kinds, crossing, first + layers * run.period, end, count);
}

std::vector<int64_t> divisors(int64_t n) {
    std::vector<int64_t> found;
    for (int64_t d = 1; d <= n; ++d)
        if (n % d == 0) found.push_back(d);
    return found;
}

class Search {
  public:
    Search(const Program& program, const Cluster& cluster, const PlanRequest& request)
        : program_(program), index_(program), cluster_(cluster), request_(request) {
        for (const ProgramTensor& t : program.tensors)
            if (t.is_parameter) {
                double n = 1;
                for (int64_t d : t.shape) n *= static_cast<double>(d);
                parameters_ += n;
                weights_ += n * t.bytes_per_element;
            }
        for (const ProgramOperator& op : program.operators) flops_ += op.flops;
        for (size_t i = 1; i < program.operators.size(); ++i) {
            const int before = program.operators[i - 1].layer, after = program.operators[i].layer;
            if (before != after || before < 0) places_.push_back(i);
        }
        crossing_ = crossing_bytes(program);
    }

    PlanSearch run() {
        start_ = std::chrono::steady_clock::now();
        std::vector<std::pair<int64_t, MeshAxes>> jobs;
        for (int64_t stages : stage_counts())
            for (MeshAxes& mesh : meshes(request_.devices / stages)) jobs.emplace_back(stages, std::move(mesh));
        std::atomic<size_t> next{0};
        std::exception_ptr problem;
        const auto work = [&] {
            try {
                for (size_t i = next++; i < jobs.size() && !is_done(); i = next++)
                    try_mesh(jobs[i].first, jobs[i].second);
            } catch (...) {
                const std::lock_guard lock(mutex_);
                if (!problem) problem = std::current_exception();
            }
        };
        const size_t count = std::min<size_t>({std::thread::hardware_concurrency(), jobs.size(), 8});
        std::vector<std::jthread> helpers;
        try {
            for (size_t i = 1; i < count; ++i) helpers.emplace_back(work);
        } catch (const std::system_error&) {
            // The system gives no more; those that there are do the work.
        }
        work();
        helpers.clear();
        if (problem) std::rethrow_exception(problem);
        trim(request_.keep);
        if (!result_.best.empty()) result_.least_bytes = 0;
        return std::move(result_);
    }

  private:
    bool is_done() {
        const std::lock_guard lock(mutex_);
        return request_.first_only && !result_.best.empty();
    }

    void try_mesh(int64_t stages, const MeshAxes& mesh) {
        for (int64_t micro_batches : micro_batch_counts(stages)) {
            const double known = worth();
            std::optional<ClusterPlan> found = fit(stages, mesh, micro_batches);
            if (!found) continue;
            const double seconds = found->seconds;
            const std::chrono::duration<double> past = std::chrono::steady_clock::now() - start_;
            const std::lock_guard lock(mutex_);
            if (result_.fitting++ == 0) result_.first_seconds = past.count();
            result_.best.push_back(std::move(*found));
            // A mesh that is far from the best one is not saved by other micro-batches.
            if (request_.first_only || seconds > 2 * known) return;
            trim(4 * request_.keep);
        }
    }

    void trim(size_t keep) {
        if (result_.best.size() <= keep) return sort();
        sort();
        result_.best.resize(keep);
    }
    void sort() {
        std::ranges::sort(result_.best, [](const auto& a, const auto& b) {
            return a.seconds != b.seconds ? a.seconds < b.seconds : a.text() < b.text();
        });
    }

    std::vector<int64_t> stage_counts() const {
        if (request_.stages) return {*request_.stages};
        std::vector<int64_t> counts;
        for (int64_t d : divisors(request_.devices))
            if (d * request_.chunks <= static_cast<int64_t>(places_.size()) + 1 && (d == 1 || has_layers(d)))
                counts.push_back(d);
        return counts;
    }
    // Stages have at least a layer each.
    bool has_layers(int64_t stages) const {
        int layers = 0;
        for (const ProgramOperator& op : program_.operators) layers = std::max(layers, op.layer + 1);
        return stages * request_.chunks <= layers;
    }

    std::vector<MeshAxes> meshes(int64_t devices) const {
        if (request_.mesh) return {*request_.mesh};
        std::vector<MeshAxes> list;
        for (int64_t inner : divisors(devices)) {
            MeshAxes mesh;
            if (devices / inner > 1 || inner == 1) mesh.push_back({"a", devices / inner});
            if (inner > 1) mesh.push_back({"b", inner});
            list.push_back(std::move(mesh));
        }
        return list;
    }

    std::vector<int64_t> micro_batch_counts(int64_t stages) const {
        if (request_.micro_batches) return {*request_.micro_batches};
        std::vector<int64_t> counts;
        for (int64_t factor : {1, 2, 4, 8}) {
            const int64_t count = stages > 1 ? stages * factor : factor * factor;
            if (count <= request_.batch && request_.batch % count == 0 && (request_.trains || count == 1 || stages > 1))
                counts.push_back(count);
        }
        if (counts.empty() && stages == 1) counts.push_back(1);
        return counts;
    }

    // The cheapest settings that fit: without and with layers that are computed twice, from whole optimizer states to
    // sharded weights.
    std::optional<ClusterPlan> fit(int64_t stages, const MeshAxes& mesh, int64_t micro_batches) {
        std::vector<PlanSettings> order;
        for (int level : {1, 2, 3, 0})
            for (bool remakes : {false, true}) {
                if (request_.level ? *request_.level != level : level == 0) continue;
                if (request_.remakes && *request_.remakes != remakes) continue;
                if (!request_.trains && (remakes || (level != 1 && !request_.level))) continue;
                PlanSettings s;
                s.micro_batches = micro_batches;
                s.level = request_.trains ? level : 0;
                s.remakes = remakes;
                s.trains = request_.trains;
                s.state_bytes = request_.state_bytes;
                s.gradient_bytes = request_.gradient_bytes;
                s.live = request_.trains ? std::min<int64_t>(micro_batches, (stages + 1) / 2) : 1;
                order.push_back(s);
            }
        std::optional<ClusterPlan> best;
        for (const PlanSettings& s : order) {
            if (least_state_bytes(stages, mesh, s) > cluster_.memory_bytes) continue;
            if (least_seconds(stages, s) >= worth()) continue;
            count_try();
            auto found = plan(stages, mesh, s);
            if (found && (!best || found->seconds < best->seconds)) best = std::move(found);
            if (best && s.remakes == best->settings.remakes && s.level == best->settings.level) break;
        }
        return best;
    }

    // No plan is faster than its products on all devices and the time in which the pipeline fills.
    double least_seconds(int64_t stages, const PlanSettings& s) const {
        const double passes = !s.trains ? 1 : s.remakes ? 4 : 3;
        const auto m = static_cast<double>(s.micro_batches), p = static_cast<double>(stages);
        const double work = passes * flops_ / cluster_.flops_per_second / static_cast<double>(request_.devices);
        const bool fills = s.trains && request_.schedule <= ScheduleKind::one_f_one_b;
        return work * (fills ? (m + p - 1) / m : 1);
    }
    // Plans that must take longer than this are not looked at: the best known one with a share for what the ranking by
    // another simulation may turn around.
    double worth() const {
        const std::lock_guard lock(mutex_);
        double least = Elimination::kForbidden;
        for (const ClusterPlan& plan : result_.best) least = std::min(least, plan.seconds);
        return request_.worth * least;
    }

    // Every rank keeps at least its share.
    double least_state_bytes(int64_t stages, const MeshAxes& mesh, const PlanSettings& s) const {
        double ranks = static_cast<double>(stages);
        for (const MeshAxis& axis : mesh) ranks *= static_cast<double>(axis.size);
        const double all = weights_ + (s.trains ? parameters_ * (s.gradient_bytes + s.state_bytes) : 0);
        return all / ranks;
    }

    std::optional<ClusterPlan> plan(int64_t stages, const MeshAxes& mesh, const PlanSettings& settings) {
        const Strategies strategies(index_, mesh, cluster_, settings);
        double limit = cluster_.memory_bytes * static_cast<double>(stages);
        // Stages are not equally large: where the largest does not fit, the same with less.
        for (int turn = 0; turn < (stages > 1 ? 2 : 1); ++turn, limit *= 0.8) {
            const Cheapest found = strategies.problem().solve(limit, 0);
            if (found.values.empty()) {
                note_bytes(strategies.problem().solve(Elimination::kUnlimited, 0).bytes / static_cast<double>(stages));
                return std::nullopt;
            }
            ClusterPlan plan;
            plan.settings = settings;
            plan.schedule = request_.schedule;
            plan.stages = static_cast<int>(stages);
            plan.chunks = stages > 1 ? request_.chunks : 1;
            plan.plan = strategies.plan_of(found);
            if (cut_stages(plan)) {
                time(plan);
                if (!request_.mesh) name_axes(plan.plan);
                return plan;
            }
        }
        return std::nullopt;
    }

    // After what most products cut with them: dp for the batch, tp for anything else.
    void name_axes(ProgramPlan& plan) const {
        std::map<std::string, int> taken;
        for (size_t a = 0; a < plan.mesh.size(); ++a) {
            double batch = 0, other = 0;
            for (size_t i = 0; i < program_.operators.size(); ++i) {
                const ProgramOperator& op = program_.operators[i];
                const int letter = plan.cuts[i][a];
                if (letter >= 0) (op.letters[static_cast<size_t>(letter)].is_batch ? batch : other) += op.flops;
            }
            std::string name = batch >= other ? "dp" : "tp";
            if (const int count = taken[name]++; count > 0) name += std::to_string(count + 1);
            plan.mesh[a].name = std::move(name);
        }
    }

    void count_try() {
        const std::lock_guard lock(mutex_);
        ++result_.tried;
    }

    void note_bytes(double bytes) {
        const std::lock_guard lock(mutex_);
        if (result_.least_bytes == 0 || bytes < result_.least_bytes) result_.least_bytes = bytes;
    }

    // Micro-batches whose activations a stage keeps.
    static double live_of(const ClusterPlan& plan, int stage) {
        const auto m = static_cast<double>(plan.settings.micro_batches);
        double live = plan.stages - stage;
        if (plan.schedule == ScheduleKind::gpipe) live = m;
        if (plan.schedule == ScheduleKind::zero_bubble_h1 || plan.schedule == ScheduleKind::zero_bubble_v)
            live = plan.stages;
        if (plan.schedule == ScheduleKind::zero_bubble_h2) live = 2 * plan.stages - 1;
        if (plan.schedule == ScheduleKind::interleaved)
            live = plan.stages + (plan.stages - 1 - 2.0 * stage + plan.stages) / plan.chunks;
        return std::min(live, m);
    }

    // What a range of operators costs: sums from the start of the program to each operator.
    struct Sums {
        std::vector<double> forward{0}, backward{0}, weights{0}, gradients{0}, states{0}, kept{0};
        double again = 0;  // bytes that the largest layer makes again
    };
    Sums sums_of(const ClusterPlan& plan) const {
        const size_t count = program_.operators.size();
        std::vector<double> forward(count), backward(count);
        for (const Movement& m : plan.plan.movements) {
            const auto at = static_cast<size_t>(m.to >= 0 ? m.to : m.from);
            forward[at] += m.forward, backward[at] += m.backward;
        }
        Sums s;
        std::map<int, double> layers;
        const double shared = plan.plan.shared.gradients / static_cast<double>(std::max<size_t>(count, 1));
        for (size_t i = 0; i < count; ++i) {
            const OperatorCost& c = plan.plan.costs[i];
            const ProgramOperator& op = program_.operators[i];
            const bool has_weight = std::ranges::any_of(op.operands, [&](const Use& use) {
                return program_.tensors[static_cast<size_t>(use.tensor)].is_parameter;
            });
            const double weight = has_weight && op.flops > 0 ? c.backward / 2 : 0;
            s.forward.push_back(s.forward.back() + c.forward + c.communication / 3 + forward[i]);
            s.backward.push_back(s.backward.back() + c.backward - weight + c.communication * 2 / 3 + backward[i]);
            s.weights.push_back(s.weights.back() + weight);
            s.gradients.push_back(s.gradients.back() + c.gradients + shared);
            s.states.push_back(s.states.back() + c.state_bytes);
            s.kept.push_back(s.kept.back() + c.kept_bytes);
            if (op.layer >= 0) layers[op.layer] += c.made_again_bytes;
        }
        for (const auto& [layer, bytes] : layers) s.again = std::max(s.again, bytes);
        return s;
    }

    StageCost cost_of(const ClusterPlan& plan, const Sums& s, size_t begin, size_t end, int part) const {
        const auto m = static_cast<double>(plan.settings.micro_batches);
        const auto between = [&](const std::vector<double>& sums) { return sums[end] - sums[begin]; };
        StageCost cost;
        cost.forward = between(s.forward) / m;
        cost.backward = between(s.backward) / m;
        cost.weight_gradient = between(s.weights) / m;
        cost.gradients = between(s.gradients);
        cost.bytes = between(s.states) + between(s.kept) / m * live_of(plan, part % plan.stages) + s.again / m;
        // Parameters with several uses are on the first stage and on the last.
        if (begin == 0 || end == program_.operators.size()) cost.bytes += plan.plan.shared.state_bytes;
        double ranks = 1;
        for (const MeshAxis& axis : plan.plan.mesh) ranks *= static_cast<double>(axis.size);
        if (end < program_.operators.size()) cost.send_bytes = crossing_[end] / m / ranks;
        return cost;
    }

    // Cuts the program into parts so that the slowest one takes the least time, each within the memory; false where
    // none are.
    bool cut_stages(ClusterPlan& plan) {
        const Sums sums = sums_of(plan);
        const size_t parts = static_cast<size_t>(plan.stages) * static_cast<size_t>(plan.chunks);
        std::vector<size_t> places{0};
        if (parts > 1) places.insert(places.end(), places_.begin(), places_.end());
        places.push_back(program_.operators.size());
        const size_t count = places.size();
        if (count < parts + 1) return false;
        const double limit = cluster_.memory_bytes / plan.chunks;
        // least[p][j]: of the slowest among the first p parts, which end at place j.
        constexpr double kNever = Elimination::kForbidden;
        std::vector<std::vector<double>> least(parts + 1, std::vector<double>(count, kNever));
        std::vector<std::vector<size_t>> from(parts + 1, std::vector<size_t>(count, 0));
        least[0][0] = 0;
        double bytes_needed = kNever;
        for (size_t p = 1; p <= parts; ++p)
            for (size_t j = p; j < count; ++j) {
                if (p == parts && j + 1 != count) continue;
                for (size_t i = j; i-- > p - 1;) {
                    if (least[p - 1][i] == kNever) continue;
                    const StageCost cost = cost_of(plan, sums, places[i], places[j], static_cast<int>(p) - 1);
                    if (parts == 1) bytes_needed = cost.bytes;
                    const double time = cost.forward + cost.backward + cost.weight_gradient;
                    if (time >= least[p][j] && i + 1 < j) break;  // longer ones take longer still
                    if (cost.bytes > limit) continue;
                    const double slowest = std::max(least[p - 1][i], time);
                    if (slowest < least[p][j]) least[p][j] = slowest, from[p][j] = i;
                }
            }
        if (least[parts][count - 1] == kNever) {
            if (parts == 1 && bytes_needed < kNever) note_bytes(bytes_needed);
            return false;
        }
        plan.part_of.assign(program_.operators.size(), 0);
        plan.parts.assign(parts, {});
        for (size_t p = parts, j = count - 1; p > 0; --p) {
            const size_t i = from[p][j];
            plan.parts[p - 1] = cost_of(plan, sums, places[i], places[j], static_cast<int>(p) - 1);
            for (size_t k = places[i]; k < places[j]; ++k) plan.part_of[k] = static_cast<int>(p) - 1;
            j = i;
        }
        return true;
    }

    void time(ClusterPlan& plan) const {
        const auto m = static_cast<int>(plan.settings.micro_batches);
        int64_t ranks = 1;
        for (const MeshAxis& axis : plan.plan.mesh) ranks *= axis.size;
        std::vector<PartTimes> parts;
        std::vector<double> gradients(static_cast<size_t>(plan.stages), 0), bytes(gradients);
        for (size_t p = 0; p < plan.parts.size(); ++p) {
            const StageCost& c = plan.parts[p];
            parts.push_back({c.forward, c.backward, c.weight_gradient, 0});
            if (c.send_bytes > 0) parts.back().send = send_seconds(cluster_, ranks, c.send_bytes);
            gradients[p % gradients.size()] += c.gradients;
            bytes[p % bytes.size()] += c.bytes;
        }
        plan.bytes = *std::ranges::max_element(bytes);
        std::vector<double> busy(gradients.size(), 0);
        double way = 0;
        for (size_t p = 0; p < parts.size(); ++p) {
            busy[p % busy.size()] += parts[p].forward + parts[p].input_gradient + parts[p].weight_gradient;
            way += parts[p].forward + parts[p].input_gradient + parts[p].weight_gradient + 2 * parts[p].send;
        }
        plan.cost = (m - 1) * *std::ranges::max_element(busy) + way + *std::ranges::max_element(gradients);
        if (!request_.trains) {
            double sum = 0, slowest = 0;
            for (const PartTimes& t : parts) sum += t.forward + t.send, slowest = std::max(slowest, t.forward);
            plan.seconds = sum + (m - 1) * slowest;
            return;
        }
        const Schedule schedule = make_schedule(plan.schedule, plan.stages, m, plan.chunks);
        const PipelineTimes times = simulate(schedule, parts);
        plan.bubble = times.bubble;
        for (size_t s = 0; s < gradients.size(); ++s) {
            const double end = times.timeline[s].empty() ? 0 : times.timeline[s].back().stop;
            plan.seconds = std::max(plan.seconds, end + gradients[s]);
        }
    }

    const Program& program_;
    const ProgramIndex index_;
    const Cluster& cluster_;
    const PlanRequest& request_;
    double parameters_ = 0, weights_ = 0, flops_ = 0;
    std::vector<size_t> places_;  // before which operators the program may be cut
    std::vector<double> crossing_;
    std::chrono::steady_clock::time_point start_;
    mutable std::mutex mutex_;  // over what follows: meshes are tried by several threads
    PlanSearch result_;
};

}  // namespace

int find_layers(Program& program) {
    for (ProgramOperator& op : program.operators) op.layer = -1;
    int count = 0;
    mark_layers(program, kinds_of(program), crossing_bytes(program), 0, program.operators.size(), count);
    return count;
}

std::string ClusterPlan::text() const {
    std::string text = stages > 1 ? str("pp ", stages, " (", name_of(schedule), "), ") : "";
    for (size_t a = 0; a < plan.mesh.size(); ++a)
        text += str(a ? " x " : "", plan.mesh[a].name, " ", plan.mesh[a].size);
    if (settings.micro_batches > 1) text += str(", ", settings.micro_batches, " micro-batches");
    if (settings.trains && settings.level > 0) text += str(", sharded optimizer of level ", settings.level);
    if (settings.remakes) text += ", layers computed twice";
    return text;
}

PlanSearch plan_cluster(const Program& program, const Cluster& cluster, const PlanRequest& request) {
    const int64_t stages = request.stages.value_or(1);
    if (request.devices < 1 || stages < 1 || request.devices % stages != 0)
        throw value_error("parallel", str(request.devices, " devices cannot be divided into ", stages, " stages"));
    if (request.mesh) {
        int64_t ranks = 1;
        for (const MeshAxis& axis : *request.mesh) ranks *= axis.size;
        if (ranks * stages != request.devices)
            throw value_error("parallel", str("a mesh of ", ranks, " ranks in ", stages, " stages has ", ranks * stages,
                                              " ranks, and there are ", request.devices, " devices"));
    }
    return Search(program, cluster, request).run();
}

}  // namespace lunaria::parallel
