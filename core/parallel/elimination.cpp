#include "core/parallel/elimination.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace lunaria::parallel {

namespace {

// Tables of more cells are not made; the variables that they would connect lose their dearest values instead.
constexpr size_t kMostCells = size_t{1} << 25;
struct TooWide {
    std::vector<int> scope;
};

}  // namespace

// One elimination: the tables that are left, and for each variable that is gone the table of its best values.
class EliminationRun {
  public:
    EliminationRun(const Elimination& problem, const Elimination::Allowed& allowed, double price)
        : problem_(problem), allowed_(allowed) {
        for (size_t v = 0; v < problem.variables_.size(); ++v) add_single(static_cast<int>(v), price);
        for (const auto& pair : problem.pairs_) add_double(pair);
    }

    // Empty where nothing is allowed.
    std::vector<int> run() {
        const size_t count = problem_.variables_.size();
        gone_.assign(count, false);
        for (size_t i = 0; i < count; ++i) eliminate(next());
        double constant = 0;
        for (const Held& held : held_)
            if (!held.used) constant += held.table->cells[0];
        std::vector<int> chosen(count, 0);
        if (!(constant < Elimination::kForbidden)) return {};
        for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
            size_t at = 0;
            for (int v : step->scope) at = at * size_of(v) + static_cast<size_t>(chosen[static_cast<size_t>(v)]);
            chosen[static_cast<size_t>(step->variable)] = step->best->at(at);
        }
        for (size_t v = 0; v < count; ++v) chosen[v] = allowed_[v][static_cast<size_t>(chosen[v])];
        return chosen;
    }

  private:
    struct Table {
        std::vector<double> cells;  // by the values of the scope, the last one changes fastest
        size_t id = 0;
    };
    struct Held {
        std::vector<int> scope;  // in rising order
        std::shared_ptr<const Table> table;
        bool used = false;
    };
    struct Step {
        int variable = 0;
        std::vector<int> scope;
        std::shared_ptr<const std::vector<uint16_t>> best;
    };
    using Made = std::pair<std::shared_ptr<const Table>, std::shared_ptr<const std::vector<uint16_t>>>;

    size_t size_of(int v) const { return allowed_[static_cast<size_t>(v)].size(); }

    void hold(std::vector<int> scope, std::shared_ptr<const Table> table) {
        for (int v : scope) with_[v].push_back(held_.size());
        held_.push_back({std::move(scope), std::move(table), false});
    }

    std::shared_ptr<const Table> table_of(std::vector<double> cells) {
        auto& known = contents_[cells];
        if (!known) known = std::make_shared<Table>(Table{std::move(cells), next_id_++});
        return known;
    }

    void add_single(int v, double price) {
        const auto& variable = problem_.variables_[static_cast<size_t>(v)];
        std::vector<double> cells;
        for (int value : allowed_[static_cast<size_t>(v)]) {
            const auto at = static_cast<size_t>(value);
            cells.push_back(price == Elimination::kForbidden ? variable.bytes[at]
                                                             : variable.seconds[at] + price * variable.bytes[at]);
            if (variable.seconds[at] == Elimination::kForbidden) cells.back() = Elimination::kForbidden;
        }
        only_bytes_ = price == Elimination::kForbidden;
        hold({v}, table_of(std::move(cells)));
    }

    // Where all values are allowed, equal objects give equal tables without a look at their cells.
    void add_double(const Elimination::Pair& pair) {
        const auto& rows = allowed_[static_cast<size_t>(pair.first)];
        const auto& columns = allowed_[static_cast<size_t>(pair.second)];
        const bool turned = pair.first > pair.second;
        const bool whole = rows.size() == pair.table->rows && columns.size() == pair.table->columns;
        auto& known = objects_[{pair.table.get(), turned, pair.times}];
        std::shared_ptr<const Table> table = whole ? known : nullptr;
        if (!table) {
            std::vector<double> cells(rows.size() * columns.size());
            for (size_t i = 0; i < rows.size(); ++i)
                for (size_t j = 0; j < columns.size(); ++j) {
                    const size_t from =
                        static_cast<size_t>(rows[i]) * pair.table->columns + static_cast<size_t>(columns[j]);
                    const double cost = pair.table->cells[from];
                    cells[turned ? j * rows.size() + i : i * columns.size() + j] =
                        only_bytes_ && cost < Elimination::kForbidden ? 0 : pair.times * cost;
                }
            table = std::make_shared<Table>(Table{std::move(cells), next_id_++});
            if (whole) known = table;
        }
        hold(turned ? std::vector{pair.second, pair.first} : std::vector{pair.first, pair.second}, std::move(table));
    }

    std::vector<int> neighbours(int v) const {
        std::set<int> others;
        const auto found = with_.find(v);
        if (found != with_.end())
            for (size_t i : found->second)
                if (!held_[i].used) others.insert(held_[i].scope.begin(), held_[i].scope.end());
        others.erase(v);
        return {others.begin(), others.end()};
    }

    double cells_of(const std::vector<int>& scope) const {
        double cells = 1;
        for (int v : scope) cells *= static_cast<double>(size_of(v));
        return cells;
    }

    // The variable of the lowest rank whose table is smallest. Sizes are remembered until a neighbour goes.
    int next() {
        if (sizes_.empty()) sizes_.assign(gone_.size(), -1);
        int best = -1;
        for (size_t v = 0; v < gone_.size(); ++v) {
            if (gone_[v]) continue;
            if (sizes_[v] < 0) sizes_[v] = cells_of(neighbours(static_cast<int>(v)));
            if (best < 0) {
                best = static_cast<int>(v);
                continue;
            }
            const auto b = static_cast<size_t>(best);
            const int rank = problem_.variables_[v].rank, other = problem_.variables_[b].rank;
            if (rank < other || (rank == other && sizes_[v] < sizes_[b])) best = static_cast<int>(v);
        }
        return best;
    }

    void eliminate(int v) {
        const std::vector<int> scope = neighbours(v);
        if (cells_of(scope) > static_cast<double>(kMostCells)) throw TooWide{scope};
        std::vector<size_t> tables;
        for (size_t i : with_[v])
            if (!held_[i].used) tables.push_back(i);
        std::ranges::sort(tables, {}, [&](size_t i) { return std::pair(held_[i].table->id, held_[i].scope); });
        // Which tables, and where their variables are among those of the result.
        std::vector<size_t> key{size_of(v)};
        std::vector<int> all = scope;
        all.insert(std::ranges::lower_bound(all, v), v);
        for (size_t i : tables) {
            key.push_back(held_[i].table->id);
            for (int w : held_[i].scope)
                key.push_back(static_cast<size_t>(std::ranges::lower_bound(all, w) - all.begin()));
        }
        for (int w : scope) key.push_back(size_of(w));
        Made& made = memory_[key];
        if (!made.first) made = combine(v, scope, tables);
        for (size_t i : tables) held_[i].used = true;
        for (int w : scope) sizes_[static_cast<size_t>(w)] = -1;
        gone_[static_cast<size_t>(v)] = true;
        steps_.push_back({v, scope, made.second});
        hold(scope, made.first);
    }

    Made combine(int v, const std::vector<int>& scope, const std::vector<size_t>& tables) {
        const auto cells = static_cast<size_t>(cells_of(scope));
        const size_t last = scope.empty() ? 1 : size_of(scope.back());
        // Of each table: the step of v, of the last variable of the scope, and of the others.
        struct Reader {
            const double* cells;
            size_t step_v = 0, step_last = 0;
            std::vector<size_t> steps;
        };
        std::vector<Reader> readers;
        for (size_t i : tables) {
            Reader r{held_[i].table->cells.data(), 0, 0, std::vector<size_t>(scope.size(), 0)};
            size_t step = 1;
            for (size_t k = held_[i].scope.size(); k-- > 0;) {
                const int w = held_[i].scope[k];
                if (w == v)
                    r.step_v = step;
                else
                    r.steps[static_cast<size_t>(std::ranges::lower_bound(scope, w) - scope.begin())] = step;
                step *= size_of(w);
            }
            if (!scope.empty()) r.step_last = r.steps.back();
            readers.push_back(std::move(r));
        }
        std::vector<double> least(cells, Elimination::kForbidden), sum(last);
        auto best = std::make_shared<std::vector<uint16_t>>(cells, uint16_t{0});
        std::vector<size_t> at(scope.size(), 0), start(readers.size());
        for (size_t row = 0; row < cells; row += last) {
            for (size_t t = 0; t < readers.size(); ++t) {
                start[t] = 0;
                for (size_t k = 0; k + 1 < scope.size(); ++k) start[t] += at[k] * readers[t].steps[k];
            }
            for (size_t value = 0; value < size_of(v); ++value) {
                double same = 0;  // of the tables without the last variable
                for (size_t t = 0; t < readers.size(); ++t)
                    if (readers[t].step_last == 0) same += readers[t].cells[start[t] + value * readers[t].step_v];
                if (same == Elimination::kForbidden) continue;
                std::ranges::fill(sum, same);
                for (size_t t = 0; t < readers.size(); ++t) {
                    const double* from = readers[t].cells + start[t] + value * readers[t].step_v;
                    const size_t step = readers[t].step_last;
                    if (step == 1)
                        for (size_t i = 0; i < last; ++i) sum[i] += from[i];
                    else if (step > 1)
                        for (size_t i = 0; i < last; ++i) sum[i] += from[i * step];
                }
                for (size_t i = 0; i < last; ++i)
                    if (sum[i] < least[row + i]) {
                        least[row + i] = sum[i];
                        (*best)[row + i] = static_cast<uint16_t>(value);
                    }
            }
            for (size_t k = scope.size(); k-- > 0;) {
                if (k + 1 == scope.size()) continue;
                if (++at[k] < size_of(scope[k])) break;
                at[k] = 0;
            }
        }
        return {std::make_shared<Table>(Table{std::move(least), next_id_++}), best};
    }

    const Elimination& problem_;
    const Elimination::Allowed& allowed_;
    bool only_bytes_ = false;
    size_t next_id_ = 0;
    std::vector<Held> held_;
    std::map<int, std::vector<size_t>> with_;
    std::map<std::vector<double>, std::shared_ptr<const Table>> contents_;
    std::map<std::tuple<const PairTable*, bool, double>, std::shared_ptr<const Table>> objects_;
    std::map<std::vector<size_t>, Made> memory_;
    std::vector<bool> gone_;
    std::vector<double> sizes_;
    std::vector<Step> steps_;
};

int Elimination::add_variable(std::vector<double> seconds, std::vector<double> bytes, int rank) {
    bytes.resize(seconds.size(), 0);
    variables_.push_back({std::move(seconds), std::move(bytes), rank});
    return static_cast<int>(variables_.size()) - 1;
}

void Elimination::repeat(int variable, const std::vector<double>& seconds, const std::vector<double>& bytes) {
    Variable& v = variables_[static_cast<size_t>(variable)];
    for (size_t i = 0; i < v.seconds.size(); ++i) v.seconds[i] += seconds[i];
    for (size_t i = 0; i < bytes.size(); ++i) v.bytes[i] += bytes[i];
}

void Elimination::add_pair(int first, int second, const std::shared_ptr<const PairTable>& seconds) {
    if (first == second) {
        auto& own = variables_[static_cast<size_t>(first)].seconds;
        for (size_t i = 0; i < own.size(); ++i) own[i] += seconds->cells[i * seconds->columns + i];
        return;
    }
    const auto [entry, is_new] = known_pairs_.try_emplace({first, second, seconds.get()}, pairs_.size());
    if (is_new)
        pairs_.push_back({first, second, seconds, 1});
    else
        pairs_[entry->second].times += 1;
}

void Elimination::fix(int variable, int value) {
    auto& seconds = variables_[static_cast<size_t>(variable)].seconds;
    for (size_t i = 0; i < seconds.size(); ++i)
        if (static_cast<int>(i) != value) seconds[i] = kForbidden;
}

double Elimination::seconds_of(const std::vector<int>& values) const {
    double sum = 0;
    for (size_t v = 0; v < variables_.size(); ++v) sum += variables_[v].seconds[static_cast<size_t>(values[v])];
    for (const Pair& pair : pairs_)
        sum += pair.times *
               pair.table->cells[static_cast<size_t>(values[static_cast<size_t>(pair.first)]) * pair.table->columns +
                                 static_cast<size_t>(values[static_cast<size_t>(pair.second)])];
    return sum;
}

double Elimination::bytes_of(const std::vector<int>& values) const {
    double sum = 0;
    for (size_t v = 0; v < variables_.size(); ++v) sum += variables_[v].bytes[static_cast<size_t>(values[v])];
    return sum;
}

// The half of a variable's values that may be part of something cheap: by what they cost themselves, and at least with
// the best of each neighbour.
std::vector<int> Elimination::cheaper_half(const Allowed& allowed, int variable) const {
    const auto at = static_cast<size_t>(variable);
    std::vector<std::pair<double, int>> costs;
    for (int value : allowed[at]) {
        double cost = variables_[at].seconds[static_cast<size_t>(value)];
        for (const Pair& pair : pairs_) {
            if (pair.first != variable && pair.second != variable) continue;
            const bool is_row = pair.first == variable;
            double least = kForbidden;
            for (int other : allowed[static_cast<size_t>(is_row ? pair.second : pair.first)]) {
                const int row = is_row ? value : other, column = is_row ? other : value;
                least = std::min(
                    least,
                    pair.table->cells[static_cast<size_t>(row) * pair.table->columns + static_cast<size_t>(column)]);
            }
            cost += pair.times * least;
        }
        costs.emplace_back(cost, value);
    }
    std::ranges::sort(costs);
    std::vector<int> kept;
    for (size_t i = 0; i < (costs.size() + 1) / 2; ++i) kept.push_back(costs[i].second);
    std::ranges::sort(kept);
    return kept;
}

// Takes out values for which there is another one that is never dearer, whatever the other variables are.
void Elimination::leave_out_dominated(Allowed& allowed) const {
    std::vector<std::vector<const Pair*>> pairs_of(variables_.size());
    for (const Pair& pair : pairs_)
        for (int v : {pair.first, pair.second}) pairs_of[static_cast<size_t>(v)].push_back(&pair);
    const auto is_dominated = [&](size_t v, int value, int other) {
        const auto a = static_cast<size_t>(value), b = static_cast<size_t>(other);
        const Variable& variable = variables_[v];
        if (variable.seconds[b] > variable.seconds[a] || variable.bytes[b] > variable.bytes[a]) return false;
        for (const Pair* pair : pairs_of[v]) {
            const bool is_row = static_cast<size_t>(pair->first) == v;
            const double* cells = pair->table->cells.data();
            const size_t columns = pair->table->columns;
            for (int w : allowed[static_cast<size_t>(is_row ? pair->second : pair->first)]) {
                const auto at = static_cast<size_t>(w);
                if (is_row ? cells[b * columns + at] > cells[a * columns + at]
                           : cells[at * columns + b] > cells[at * columns + a])
                    return false;
            }
        }
        return true;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t v = 0; v < variables_.size(); ++v) {
            auto& values = allowed[v];
            for (size_t i = 0; i < values.size();) {
                const bool out = std::ranges::any_of(
                    values, [&](int other) { return other != values[i] && is_dominated(v, values[i], other); });
                if (out)
                    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
                else
                    ++i;
                changed = changed || out;
            }
        }
    }
}

Elimination::Found Elimination::relaxed(const Allowed& allowed, double price) const {
    Found found;
    if (std::ranges::any_of(allowed, [](const auto& values) { return values.empty(); })) return found;
    Allowed narrowed;
    for (const Allowed* now = &allowed;;) {
        try {
            found.values = EliminationRun(*this, *now, price).run();
            break;
        } catch (const TooWide& wide) {
            if (now != &narrowed) narrowed = *now, now = &narrowed;
            const int largest = *std::ranges::max_element(
                wide.scope, {}, [&](int v) { return narrowed[static_cast<size_t>(v)].size(); });
            narrowed[static_cast<size_t>(largest)] = cheaper_half(narrowed, largest);
            found.is_narrowed = true;
        }
    }
    if (found.values.empty()) return found;
    found.seconds = seconds_of(found.values);
    found.bytes = bytes_of(found.values);
    return found;
}

// The best values found within a limit, and a bound for all values there are: the largest least of seconds + price *
// (bytes - limit) over all prices. It is found where two values with different bytes, one on either side of the limit,
// are equally good.
Cheapest Elimination::within(const Allowed& allowed, double most_bytes, int turns, std::vector<int>& over) const {
    Cheapest best;
    over.clear();
    const auto take = [&](const Found& f) {
        if (f.values.empty() || f.bytes > most_bytes || f.seconds >= best.seconds) return;
        best.values = f.values, best.seconds = f.seconds, best.bytes = f.bytes;
    };
    Found large = relaxed(allowed, 0);
    best.bound = large.is_narrowed ? 0 : large.seconds;
    take(large);
    if (large.values.empty() || large.bytes <= most_bytes) return best;
    Found small = relaxed(allowed, kForbidden);
    over = large.values;
    take(small);
    if (small.values.empty() || small.bytes > most_bytes) {
        best.bound = kForbidden;
        return best;
    }
    for (int turn = 0; turn < turns; ++turn) {
        const double price = (small.seconds - large.seconds) / (large.bytes - small.bytes);
        if (!(price > 0)) break;
        const Found middle = relaxed(allowed, price);
        const double at_ends = large.seconds + price * large.bytes;
        const double value = middle.seconds + price * middle.bytes;
        if (!middle.is_narrowed) best.bound = std::max(best.bound, std::min(value, at_ends) - price * most_bytes);
        take(middle);
        if (value >= at_ends * (1 - 1e-12)) break;
        (middle.bytes > most_bytes ? large : small) = middle;
        over = large.values;
    }
    return best;
}

Cheapest Elimination::solve(double most_bytes, int effort) const {
    Allowed all(variables_.size());
    for (size_t v = 0; v < all.size(); ++v) {
        all[v].resize(variables_[v].seconds.size());
        std::iota(all[v].begin(), all[v].end(), 0);
    }
    leave_out_dominated(all);
    const int turns = effort > 0 ? 60 : 3;
    // Parts of the problem that may hold better values than those known, the most promising first.
    struct Part {
        double bound;
        Allowed allowed;
        std::vector<int> over, best;
    };
    const auto later = [](const Part& a, const Part& b) { return a.bound > b.bound; };
    std::vector<Part> parts;
    Cheapest best;
    const auto add = [&](Allowed allowed) {
        std::vector<int> over;
        const Cheapest found = within(allowed, most_bytes, turns, over);
        if (!found.values.empty() && found.seconds < best.seconds) {
            best.values = found.values;
            best.seconds = found.seconds;
            best.bytes = found.bytes;
        }
        const bool is_open = !over.empty() && found.bound < best.seconds * (1 - 1e-12) && !found.is_exact();
        if (!is_open && found.bound > 0) return found.bound;
        if (over.empty()) return found.bound;
        parts.push_back({found.bound, std::move(allowed), std::move(over), found.values});
        std::ranges::push_heap(parts, later);
        return found.bound;
    };
    best.bound = add(std::move(all));
    while (!parts.empty() && effort-- > 0) {
        std::ranges::pop_heap(parts, later);
        const Part part = std::move(parts.back());
        parts.pop_back();
        best.bound = std::max(best.bound, std::min(part.bound, best.seconds));
        if (part.bound >= best.seconds * (1 - 1e-12)) {
            parts.clear();
            break;
        }
        // A variable in which the values on the two sides of the limit differ, the one of most bytes.
        int split = -1;
        double difference = -1;
        for (size_t v = 0; v < part.over.size(); ++v) {
            const int a = part.over[v], b = part.best.empty() ? -1 : part.best[v];
            if (a == b || part.allowed[v].size() < 2) continue;
            const auto& bytes = variables_[v].bytes;
            const double d = std::abs(bytes[static_cast<size_t>(a)] - (b < 0 ? 0 : bytes[static_cast<size_t>(b)]));
            if (d > difference) split = static_cast<int>(v), difference = d;
        }
        if (split < 0) continue;
        const auto at = static_cast<size_t>(split);
        Allowed with = part.allowed, without = part.allowed;
        with[at] = {part.over[at]};
        std::erase(without[at], part.over[at]);
        add(std::move(with));
        add(std::move(without));
    }
    if (parts.empty() && best.bound > 0) best.bound = best.seconds;
    return best;
}

// Values one variable after the other; what cannot become better than the best so far is left at once, since nothing
// costs less than its cheapest value.
Cheapest Elimination::exhaustive(double most_bytes) const {
    const size_t count = variables_.size();
    std::vector<std::vector<const Pair*>> before(count);  // pairs whose other variable comes earlier
    for (const Pair& pair : pairs_) before[static_cast<size_t>(std::max(pair.first, pair.second))].push_back(&pair);
    std::vector<double> rest_seconds(count + 1, 0), rest_bytes(count + 1, 0);
    for (size_t v = count; v-- > 0;) {
        rest_seconds[v] = rest_seconds[v + 1] + *std::ranges::min_element(variables_[v].seconds);
        rest_bytes[v] = rest_bytes[v + 1] + *std::ranges::min_element(variables_[v].bytes);
    }
    Cheapest best;
    std::vector<int> values(count, 0);
    const std::function<void(size_t, double, double)> go = [&](size_t v, double seconds, double bytes) {
        if (seconds + rest_seconds[v] >= best.seconds || bytes + rest_bytes[v] > most_bytes) return;
        if (v == count) {
            best.values = values, best.seconds = best.bound = seconds, best.bytes = bytes;
            return;
        }
        for (size_t i = 0; i < variables_[v].seconds.size(); ++i) {
            values[v] = static_cast<int>(i);
            double sum = seconds + variables_[v].seconds[i];
            for (const Pair* pair : before[v])
                sum += pair->times * pair->table->cells[static_cast<size_t>(values[static_cast<size_t>(pair->first)]) *
                                                            pair->table->columns +
                                                        static_cast<size_t>(values[static_cast<size_t>(pair->second)])];
            go(v + 1, sum, bytes + variables_[v].bytes[i]);
        }
    };
    go(0, 0, 0);
    return best;
}

}  // namespace lunaria::parallel
