#include "core/parallel/redistribution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "core/parallel/redistribution_steps.h"

namespace lunaria::parallel {
namespace {

constexpr std::array<const char*, 8> kNames = {"slice",      "place",      "all_gather", "reduce_scatter",
                                               "all_reduce", "all_to_all", "permute",    "exchange"};

Link slowest(const Mesh& mesh, AxisSet axes, const Costs& costs) {
    if (costs.axes.empty()) return costs.link;
    Link link{0, 0};
    for (int a = 0; a < mesh.axes(); ++a) {
        if (!has_axis(axes, a)) continue;
        const Link& one = static_cast<size_t>(a) < costs.axes.size() ? costs.axes[static_cast<size_t>(a)] : costs.link;
        link.latency = std::max(link.latency, one.latency);
        link.seconds_per_byte = std::max(link.seconds_per_byte, one.seconds_per_byte);
    }
    return link;
}

// The axes along which an exchange moves something. Ranks with equal pieces share the work of combining terms.
AxisSet moved_along(const Distribution& from, const Distribution& to) {
    return from.partial() ? from.mesh().all_axes() : from.cut_axes() | to.cut_axes() | to.partial();
}

int64_t bytes_of(const Distribution& layout, const Shape& shape, DType dtype) {
    return layout.largest_piece(shape).size() * static_cast<int64_t>(size_of(dtype));
}

// Exchanges of more parts are neither planned nor counted part by part.
constexpr double kMaxParts = 1e6;

bool is_countable(const Distribution& from, const Distribution& to, const Shape& shape) {
    return part_count(from, to, shape) <= kMaxParts;
}

// The bytes that a rank gets by a collective step where all pieces are like the largest.
double bytes_by_formula(StepKind kind, double n, double before, double after) {
    switch (kind) {
        case StepKind::slice:
        case StepKind::place:
            return 0;
        case StepKind::all_gather:
            return after - before;
        case StepKind::reduce_scatter:
            return (n - 1) * after;
        case StepKind::all_reduce:
            return 2 * (n - 1) / n * before;
        case StepKind::all_to_all:
            return (n - 1) / n * after;
        case StepKind::permute:
        case StepKind::exchange:
            break;
    }
    return after;
}

// Fills in what a collective step costs with the pieces that there are.
void weigh(Step& step, const Shape& shape, DType dtype, const Costs& costs) {
    const auto width = static_cast<int64_t>(size_of(dtype));
    const Mesh& mesh = step.from->mesh();
    const int64_t n = mesh.size_of(step.axes), before = bytes_of(*step.from, shape, dtype);
    step.way = Way::alone;
    if (step.kind == StepKind::slice || step.kind == StepKind::place) return;
    if (step.kind == StepKind::all_reduce) {
        step.bytes = 2 * (n - 1) * before / n;
        for (int64_t p = 0; p < mesh.count(); ++p)
            step.total_bytes += 2 * (n - 1) * step.from->piece_shape(shape, p).size() * width / n;
    } else if (is_countable(*step.from, *step.to, shape)) {
        const Volume volume = volume_of(exchange_between(*step.from, *step.to, shape, step.way, step.axes));
        step.bytes = volume.received * width;
        step.total_bytes = volume.total * width;
    } else {
        const auto after = static_cast<double>(bytes_of(*step.to, shape, dtype));
        step.bytes = static_cast<int64_t>(
            bytes_by_formula(step.kind, static_cast<double>(n), static_cast<double>(before), after));
        step.total_bytes = step.bytes * mesh.count();
    }
    if (step.kind == StepKind::all_reduce) {
        step.seconds = collective_seconds(step.kind, mesh, step.axes, static_cast<double>(before), 0, costs);
        return;
    }
    step.seconds = collective_seconds(step.kind, mesh, step.axes, 0, 0, costs) +
                   static_cast<double>(step.bytes) * slowest(mesh, step.axes, costs).seconds_per_byte;
}

void add_up(Plan& plan) {
    for (const Step& step : plan.steps) {
        plan.bytes += step.bytes;
        plan.total_bytes += step.total_bytes;
        plan.seconds += step.seconds;
    }
}

Step exchange_step(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                   const Costs& costs) {
    const auto width = static_cast<int64_t>(size_of(dtype));
    const bool same_mesh = &from.mesh() == &to.mesh();
    const AxisSet axes = same_mesh ? moved_along(from, to) : from.mesh().all_axes();
    const Link link = same_mesh ? slowest(from.mesh(), axes, costs) : costs.link;
    Step best;
    for (Way way : {Way::shared, Way::balanced, Way::relayed, Way::alone}) {
        const Volume volume = volume_of(exchange_between(from, to, shape, way, axes));
        const double seconds =
            volume.messages * link.latency +
            static_cast<double>(std::max(volume.received, volume.sent) * width) * link.seconds_per_byte;
        const int64_t bytes = volume.received * width, total = volume.total * width;
        const bool is_better =
            link.latency > 0 ? seconds < best.seconds : std::tie(total, bytes) < std::tie(best.total_bytes, best.bytes);
        if (way != Way::shared && !is_better) continue;
        best.from = &from;
        best.to = &to;
        best.axes = axes;
        best.way = way;
        best.bytes = bytes;
        best.total_bytes = total;
        best.seconds = seconds;
    }
    return best;
}

Plan empty_plan(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype) {
    Plan plan;
    plan.from = &from;
    plan.to = &to;
    plan.shape = shape;
    plan.dtype = dtype;
    return plan;
}

std::optional<Plan> path_within(const Plan& empty, const Costs& costs, double limit) {
    Plan plan = empty;
    auto steps =
        search_steps(*plan.from, *plan.to, plan.shape, static_cast<int64_t>(size_of(plan.dtype)), costs, limit);
    if (!steps) return std::nullopt;
    plan.steps = std::move(*steps);
    for (Step& step : plan.steps) weigh(step, plan.shape, plan.dtype, costs);
    add_up(plan);
    return plan;
}

void check_merge(const Distribution& layout, DType dtype) {
    const Merge merge = layout.merge();
    const bool logical = merge == Merge::all || merge == Merge::any;
    if (merge == Merge::none) return;
    if (logical != (dtype == DType::boolean) || is_stored_only(dtype) ||
        (is_complex(dtype) && merge != Merge::sum && merge != Merge::prod))
        throw dtype_error("redistribute",
                          str("values of dtype ", name_of(dtype), " have no ", name_of(merge), ": ", layout.text()));
}

Plan make_plan(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype, const Costs& costs) {
    Plan exchange = empty_plan(from, to, shape, dtype);
    if (&from == &to) return exchange;
    check_merge(from, dtype);
    check_merge(to, dtype);
    const int64_t needed = bytes_of(from, shape, dtype) + bytes_of(to, shape, dtype);
    // A path may need less than the direct way: through smaller pieces.
    const bool fits = !costs.memory_limit || needed <= costs.memory_limit, counts = is_countable(from, to, shape);
    constexpr double kTie = 1e-9;
    double limit = std::numeric_limits<double>::max() / 2;
    if (fits && counts) {
        exchange = direct_exchange(from, to, shape, dtype, costs);
        limit = exchange.seconds * (1 + kTie);
    }
    // The search takes all pieces for as large as the largest.
    const double slack = from.is_even(shape) && to.is_even(shape) ? 1 : 1.5;
    if (auto path = path_within(empty_plan(from, to, shape, dtype), costs, limit * slack)) {
        const bool is_as_small = path->total_bytes <= exchange.total_bytes && path->bytes <= exchange.bytes;
        const bool is_faster = path->seconds < exchange.seconds * (1 - kTie);
        const bool is_as_fast = path->seconds <= limit;
        if (exchange.steps.empty() || (is_as_fast && is_as_small) || (is_faster && costs.link.latency > 0))
            return *path;
    }
    if (!exchange.steps.empty()) return exchange;
    if (fits)
        throw memory_error("redistribute", str("from ", from.text(dtype, shape), " to ", to.text(dtype, shape),
                                               " takes more than ", kMaxParts, " messages"));
    throw memory_error("redistribute", str("from ", from.text(dtype, shape), " to ", to.text(dtype, shape), " takes ",
                                           needed, " bytes on one rank, and the limit is ", costs.memory_limit));
}

}  // namespace

const char* name_of(StepKind kind) { return kNames[static_cast<size_t>(kind)]; }

double collective_seconds(StepKind kind, const Mesh& mesh, AxisSet axes, double before, double after,
                          const Costs& costs) {
    const auto n = static_cast<double>(mesh.size_of(axes));
    const Link link = slowest(mesh, axes, costs);
    const double rounds = std::bit_width(static_cast<uint64_t>(mesh.size_of(axes)) - 1);
    const double bytes = bytes_by_formula(kind, n, before, after);
    switch (kind) {
        case StepKind::slice:
        case StepKind::place:
            return 0;
        case StepKind::all_gather:
        case StepKind::reduce_scatter:
            return rounds * link.latency + bytes * link.seconds_per_byte;
        case StepKind::all_reduce:
            // Engines send large tensors in parts, there and back, and small ones whole to one partner in each round.
            return std::min(2 * rounds * link.latency + bytes * link.seconds_per_byte,
                            rounds * (link.latency + before * link.seconds_per_byte));
        case StepKind::all_to_all:
            return (n - 1) * link.latency + bytes * link.seconds_per_byte;
        case StepKind::permute:
        case StepKind::exchange:
            break;
    }
    return link.latency + bytes * link.seconds_per_byte;
}

std::optional<Plan> shortest_path(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                                  const Costs& costs) {
    return path_within(empty_plan(from, to, shape, dtype), costs, std::numeric_limits<double>::max());
}

Plan direct_exchange(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                     const Costs& costs) {
    Plan plan = empty_plan(from, to, shape, dtype);
    plan.steps.push_back(exchange_step(from, to, shape, dtype, costs));
    add_up(plan);
    return plan;
}

Plan plan_redistribution(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                         const Costs& costs) {
    // Programs ask for the same few changes again and again.
    constexpr size_t kMaxPlans = 4096;
    using Key = std::tuple<const Distribution*, const Distribution*, std::vector<int64_t>, DType, std::vector<double>>;
    static std::mutex mutex;
    static std::map<Key, Plan> known;
    std::vector<double> figures = {costs.link.latency, costs.link.seconds_per_byte,
                                   static_cast<double>(costs.memory_limit)};
    for (const Link& link : costs.axes) figures.insert(figures.end(), {link.latency, link.seconds_per_byte});
    const Key key(&from, &to, {shape.begin(), shape.end()}, dtype, std::move(figures));
    {
        const std::lock_guard lock(mutex);
        const auto found = known.find(key);
        if (found != known.end()) return found->second;
    }
    const Plan plan = make_plan(from, to, shape, dtype, costs);
    const std::lock_guard lock(mutex);
    if (known.size() >= kMaxPlans) known.clear();
    known.emplace(key, plan);
    return plan;
}

Volume lower_bound_bytes(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype) {
    Volume bound = lower_bound(from, to, shape);
    const auto width = static_cast<int64_t>(size_of(dtype));
    bound.received *= width;
    bound.total *= width;
    return bound;
}

std::string Plan::text() const {
    std::string text;
    for (const Step& step : steps)
        text += str(text.empty() ? "" : " -> ", name_of(step.kind), "(", step.from->mesh().names_of(step.axes), ")",
                    step.bytes ? str(" ", step.bytes, " B") : "");
    return text;
}

}  // namespace lunaria::parallel
