#include "core/insight/graph/difference.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace lunaria::insight {

namespace {

using Hashes = std::vector<uint64_t>;

uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>()(text); }

// Operators in an order in which they come after what they take from; those on cycles come last.
std::vector<int32_t> sorted(const GraphModel& model) {
    std::vector<int32_t> missing(model.size(), 0), order;
    for (int32_t v = 0; v < model.size(); ++v)
        if ((missing[v] = static_cast<int32_t>(model.inputs(v).size())) == 0) order.push_back(v);
    for (size_t i = 0; i < order.size(); ++i)
        for (const GraphModel::Link& l : model.users(order[i]))
            if (--missing[l.node] == 0) order.push_back(l.node);
    for (int32_t v = 0; v < model.size(); ++v)
        if (missing[v] > 0) order.push_back(v);
    return order;
}

struct Labels {
    Hashes label, down, up;  // of the node, with all that it depends on, with all that depends on it

    Labels(const GraphModel& model, bool exact) {
        const auto size = static_cast<size_t>(model.size());
        label.resize(size);
        for (int32_t v = 0; v < model.size(); ++v) {
            label[v] = mixed(hash_of(model.type_of(v)), model.inputs(v).size());
            if (!exact) continue;
            label[v] = mixed(label[v], hash_of(model.result_of(v)));
            if (model.is_operator(v))
                for (const auto& [name, value] : model.graph().nodes[v].attributes)
                    label[v] = mixed(label[v], hash_of(name) + 31 * hash_of(value));
        }
        down = up = label;
        const std::vector<int32_t> order = sorted(model);
        const auto sweep = [&](Hashes& hashes, int32_t v, std::span<const GraphModel::Link> links) {
            uint64_t sum = 0;
            for (const GraphModel::Link& l : links) sum += mixed(hashes[l.node], static_cast<uint64_t>(l.place) + 1);
            hashes[v] = mixed(label[v], sum);
        };
        for (const int32_t v : order) sweep(down, v, model.inputs(v));
        for (auto v = order.rbegin(); v != order.rend(); ++v) sweep(up, *v, model.users(*v));
    }
};

class Matching {
  public:
    Matching(const GraphModel& before, const GraphModel& after)
        : before_(before),
          after_(after),
          hashes_{{{Labels(before, true), Labels(after, true)}, {Labels(before, false), Labels(after, false)}}},
          match_(before.size(), -1),
          back_(after.size(), -1) {}

    std::vector<int32_t> run() {
        // What only one node of each graph has, and what follows from it along the edges; then equal ones among equals,
        // of which each pair decides on its neighbours before the next is made.
        match_all(true);
        follow_all(Rule::only_alike);
        match_all(false);
        match_names();
        follow_all(Rule::alike);
        follow_all(Rule::between);
        return match_;
    }

  private:
    // Which neighbours of a pair are a pair: those that see the same graph above or below them (similar), those of one
    // type (alike), both also only where no other one beside them is so too; or those whose neighbours are mostly
    // pairs.
    enum class Rule : uint8_t { only_similar, only_alike, similar, alike, between };

    bool are_free(int32_t a, int32_t b) const { return match_[a] < 0 && back_[b] < 0; }
    bool are_alike(int32_t a, int32_t b) const {
        return before_.is_operator(a) == after_.is_operator(b) && before_.type_of(a) == after_.type_of(b);
    }
    bool are_similar(int32_t a, int32_t b) const {
        const auto& [x, y] = hashes_[level_];
        return x.label[a] == y.label[b] && (x.down[a] == y.down[b] || x.up[a] == y.up[b]);
    }
    void pair(int32_t a, int32_t b) {
        match_[a] = b;
        back_[b] = a;
        queue_.push_back(a);
    }

    void match_all(bool only_unique) {
        for (level_ = 0; level_ < hashes_.size(); ++level_) {
            const auto& [a, b] = hashes_[level_];
            match_equal([&](int32_t v) { return mixed(a.down[v], a.up[v]); },
                        [&](int32_t v) { return mixed(b.down[v], b.up[v]); }, only_unique);
            match_equal([&](int32_t v) { return a.down[v]; }, [&](int32_t v) { return b.down[v]; }, only_unique);
            match_equal([&](int32_t v) { return a.up[v]; }, [&](int32_t v) { return b.up[v]; }, only_unique);
        }
    }

    template <class A, class B>
    void match_equal(const A& hash_before, const B& hash_after, bool only_unique) {
        std::unordered_map<uint64_t, std::pair<std::vector<int32_t>, std::vector<int32_t>>> buckets;
        for (int32_t v = 0; v < before_.size(); ++v)
            if (match_[v] < 0) buckets[hash_before(v)].first.push_back(v);
        for (int32_t v = 0; v < after_.size(); ++v)
            if (back_[v] < 0)
                if (const auto found = buckets.find(hash_after(v)); found != buckets.end())
                    found->second.second.push_back(v);
        for (int32_t v = 0; v < before_.size(); ++v) {
            if (match_[v] >= 0) continue;
            const auto& [a, b] = buckets[hash_before(v)];
            if (only_unique && (a.size() != 1 || b.size() != 1)) continue;
            // Some of them may have become pairs on the way.
            const auto other = std::ranges::find_if(b, [&](int32_t w) { return back_[w] < 0; });
            if (a.size() != b.size() || other == b.end()) continue;
            pair(v, *other);
            follow(only_unique ? Rule::only_similar : Rule::similar);
        }
    }

    // Equal names, where they are more than numbers.
    void match_names() {
        for (int32_t v = 0; v < before_.size(); ++v) {
            const std::string& name = before_.name_of(v);
            if (match_[v] >= 0 || name.find_first_not_of("0123456789%#") == std::string::npos) continue;
            const auto other = after_.find(name);
            if (other && are_free(v, *other) && are_alike(v, *other)) pair(v, *other);
        }
    }

    void follow_all(Rule rule) {
        for (int32_t v = 0; v < before_.size(); ++v)
            if (match_[v] >= 0) queue_.push_back(v);
        follow(rule);
    }
    void follow(Rule rule) {
        for (size_t i = 0; i < queue_.size(); ++i) {
            const int32_t a = queue_[i], b = match_[a];
            follow(before_.inputs(a), after_.inputs(b), rule);
            follow(before_.users(a), after_.users(b), rule);
        }
        queue_.clear();
    }
    void follow(std::span<const GraphModel::Link> a, std::span<const GraphModel::Link> b, Rule rule) {
        constexpr size_t kMostLinks = 300;  // of one node: each is compared with each
        if (a.size() > kMostLinks || b.size() > kMostLinks) return;
        const auto fit = [&](const GraphModel::Link& x, const GraphModel::Link& y) {
            if (x.place != y.place || !are_free(x.node, y.node)) return false;
            if (rule == Rule::alike || rule == Rule::only_alike) return are_alike(x.node, y.node);
            return rule == Rule::between ? are_between_same(x.node, y.node) : are_similar(x.node, y.node);
        };
        for (const GraphModel::Link& x : a) {
            if (match_[x.node] >= 0) continue;
            const auto y = std::ranges::find_if(b, [&](const GraphModel::Link& l) { return fit(x, l); });
            if (y == b.end()) continue;
            const auto is_other_fit = [&](const GraphModel::Link& l) { return l.node != y->node && fit(x, l); };
            const auto is_rival = [&](const GraphModel::Link& l) { return l.node != x.node && fit(l, *y); };
            if ((rule == Rule::only_similar || rule == Rule::only_alike) &&
                (std::any_of(y + 1, b.end(), is_other_fit) || std::ranges::any_of(a, is_rival)))
                continue;
            pair(x.node, y->node);
        }
    }
    bool are_between_same(int32_t a, int32_t b) const {
        if (before_.is_operator(a) != after_.is_operator(b)) return false;
        // Given values are many of a kind and say little.
        size_t agreeing = 0, links = 0;
        const auto agree = [&](std::span<const GraphModel::Link> x, std::span<const GraphModel::Link> y) {
            for (const GraphModel::Link& l : x) {
                if (!before_.is_operator(l.node)) continue;
                ++links;
                agreeing += std::ranges::any_of(
                    y, [&](const GraphModel::Link& m) { return match_[l.node] == m.node && l.place == m.place; });
            }
        };
        agree(before_.inputs(a), after_.inputs(b));
        agree(before_.users(a), after_.users(b));
        return agreeing > 0 && 2 * agreeing >= links;
    }

    const GraphModel &before_, &after_;
    const std::array<std::pair<Labels, Labels>, 2> hashes_;  // exact, and by types only
    size_t level_ = 0;                                       // which of them count
    std::vector<int32_t> match_, back_;
    std::vector<int32_t> queue_;
};

std::vector<GraphDifference::Change::Value> changes_of(const GraphModel& before, int32_t a, const GraphModel& after,
                                                       int32_t b, const std::vector<int32_t>& match) {
    std::vector<GraphDifference::Change::Value> values;
    const auto compare = [&](const std::string& name, const std::string& x, const std::string& y) {
        if (x != y) values.push_back({name, x, y});
    };
    compare("type", before.type_of(a), after.type_of(b));
    compare("result", before.result_of(a), after.result_of(b));
    std::map<std::string, std::pair<std::string, std::string>> attributes;
    for (const auto& [name, value] : before.graph().nodes[a].attributes) attributes[name].first = value;
    for (const auto& [name, value] : after.graph().nodes[b].attributes) attributes[name].second = value;
    for (const auto& [name, both] : attributes) compare(name, both.first, both.second);
    // Of given values only what they are: one parameter is as good as another.
    const auto inputs_of = [](const GraphModel& model, int32_t v, const auto& text_of) {
        std::string text;
        for (const GraphModel::Link& l : model.inputs(v))
            text += str(text.empty() ? "" : ", ", model.is_operator(l.node)
                                                      ? text_of(l.node)
                                                      : model.type_of(l.node) + " " + model.result_of(l.node));
        return text;
    };
    const auto x = inputs_of(before, a, [&](int32_t v) { return str(match[v]); });
    const auto y = inputs_of(after, b, [](int32_t v) { return str(v); });
    if (x != y) {
        const auto name_in = [](const GraphModel& model) { return [&](int32_t v) { return model.name_of(v); }; };
        values.push_back({"inputs", inputs_of(before, a, name_in(before)), inputs_of(after, b, name_in(after))});
    }
    return values;
}

}  // namespace

GraphDifference difference_of(const GraphModel& before, const GraphModel& after) {
    GraphDifference d;
    d.match = Matching(before, after).run();
    std::vector<uint8_t> is_matched(after.size(), 0);
    for (int32_t v = 0; v < before.operators(); ++v) {
        const int32_t other = d.match[v];
        if (other < 0) {
            d.removed.push_back(v);
            continue;
        }
        is_matched[other] = 1;
        if (auto values = changes_of(before, v, after, other, d.match); !values.empty())
            d.changed.push_back({v, other, std::move(values)});
    }
    for (int32_t v = 0; v < after.operators(); ++v)
        if (!is_matched[v]) d.added.push_back(v);
    return d;
}

}  // namespace lunaria::insight
