// Substructures are judged by rules that know nothing of the search: from the graph and the JSON text alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "core/insight/description.h"

namespace lunaria::insight {
namespace {

struct Judged {
    std::vector<std::string> broken;
    double compression = 1;
    std::vector<std::set<std::string>> instances;
};

// The node's type and inputs, those from the same instance by their place in it.
std::string form_of(const OperatorGraph& graph, int32_t v, const std::map<int32_t, size_t>& place) {
    const OperatorNode& node = graph.nodes[v];
    std::string form = str(node.type, '/', node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i)
        if (const auto at = place.find(node.inputs[i].node); at != place.end())
            form += str('/', i, ':', at->second, node.inputs[i].is_control ? "c" : "");
    return form;
}

Judged judge(const OperatorGraph& graph, const std::string& json) {
    Judged result;
    const auto fail = [&](auto... what) { result.broken.push_back(str(what...)); };
    std::map<std::string, int32_t> by_name;
    for (size_t v = 0; v < graph.nodes.size(); ++v) by_name[graph.nodes[v].name] = static_cast<int32_t>(v);
    std::map<int32_t, std::pair<std::string, std::set<std::string>>> outermost;
    const nlohmann::json parsed = nlohmann::json::parse(json);
    for (const auto& [key, list] : parsed.items()) {
        if (key.find_first_not_of("0123456789") != std::string::npos) fail("key ", key);
        if (list.size() < 2) fail(key, ": fewer than 2 instances");
        std::vector<std::string> first;
        std::set<int32_t> seen;
        for (const auto& instance : list) {
            if (instance.size() != 2) fail(key, ": an instance is nodes and edges");
            std::map<int32_t, size_t> place;
            std::vector<int32_t> nodes;
            std::set<std::string> names;
            for (const auto& name : instance[0]) {
                const auto known = by_name.find(name);
                if (known == by_name.end()) {
                    fail(key, ": unknown node");
                    continue;
                }
                if (!place.emplace(known->second, nodes.size()).second) fail(key, ": a node twice");
                if (!seen.insert(known->second).second) fail(key, ": instances overlap");
                nodes.push_back(known->second);
                names.insert(name);
            }
            std::vector<std::string> forms;
            std::set<std::pair<std::string, std::string>> real, given;
            std::vector<size_t> group(nodes.size());
            std::iota(group.begin(), group.end(), size_t{0});
            for (const int32_t v : nodes) {
                forms.push_back(form_of(graph, v, place));
                for (const auto& input : graph.nodes[v].inputs) {
                    if (!place.contains(input.node)) continue;
                    real.emplace(graph.nodes[input.node].name, graph.nodes[v].name);
                    const size_t from = group[place[v]], to = group[place[input.node]];
                    std::replace(group.begin(), group.end(), from, to);
                }
            }
            for (const auto& edge : instance[1]) given.emplace(edge[0], edge[1]);
            if (given != real || given.size() != instance[1].size()) fail(key, ": edges differ from the graph's");
            if (std::ranges::any_of(group, [&](size_t g) { return g != group[0]; })) fail(key, ": not connected");
            if (first.empty()) first = forms;
            if (forms != first) fail(key, ": not the structure of the first instance");
            for (const int32_t v : nodes)
                if (outermost[v].second.size() < names.size()) outermost[v] = {key, names};
            result.instances.push_back(std::move(names));
        }
    }
    std::map<std::string, std::set<std::set<std::string>>> boxes;
    for (const auto& [v, owner] : outermost) boxes[owner.first].insert(owner.second);
    size_t shown = graph.nodes.size() - outermost.size();
    for (const auto& [key, sets] : boxes) shown += sets.size() + sets.begin()->size();
    result.compression = static_cast<double>(graph.nodes.size()) / static_cast<double>(std::max<size_t>(shown, 1));
    return result;
}

OperatorGraph graph_in(const std::string& file) {
    return read_operator_graph(*open_source("tests/core/insight/graphs/" + file));
}

std::string found_in(const OperatorGraph& graph, Equality equality = Equality::operators) {
    return json_of(graph, find_substructures(graph, equality));
}

// The nodes in another order; with other names too, where they are given.
OperatorGraph shuffled(const OperatorGraph& graph, std::mt19937& random, std::vector<std::string>* names = nullptr) {
    std::vector<int32_t> place(graph.nodes.size());
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
    OperatorGraph result;
    result.nodes.resize(graph.nodes.size());
    for (size_t v = 0; v < place.size(); ++v) {
        OperatorNode node = graph.nodes[v];
        for (auto& input : node.inputs)
            if (input.node >= 0) input.node = place[input.node];
        if (names) node.name = (*names)[v] = str("n", place[v]);
        result.nodes[place[v]] = std::move(node);
    }
    return result;
}

struct Planted {
    OperatorGraph graph;
    std::vector<std::vector<std::set<std::string>>> patterns;  // the instances of each
};

// Patterns of about `size` operators of 20 types, each `repeats` times, in a background of 400 types, and near-copies
// of each pattern in which one type is changed.
Planted planted(uint32_t seed, int total, int patterns, int repeats, int size, int near) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<int32_t>(random() % n); };
    struct Part {
        std::string type;
        std::vector<int32_t> inner;
        int outer;
    };
    std::vector<std::vector<Part>> made(patterns);
    int inside = 0;
    for (auto& pattern : made) {
        const int n = std::max(4, size * (60 + below(90)) / 100);
        inside += n * (repeats + near);
        for (int i = 0; i < n; ++i) {
            std::set<int32_t> inner;
            if (i > 0)
                for (int k = below(4) == 3 ? 2 : 1; k > 0; --k) inner.insert(std::max(0, i - 1 - below(4)));
            pattern.push_back({str("Op", below(20)), {inner.begin(), inner.end()}, (below(3) == 2) + (i == 0)});
        }
    }
    Planted result;
    result.patterns.resize(patterns);
    auto& nodes = result.graph.nodes;
    const auto outside = [&] {
        const int32_t n = static_cast<int32_t>(nodes.size());
        return n - 1 - below(std::min<size_t>(nodes.size(), 500));
    };
    const auto add = [&](std::string type, const std::vector<int32_t>& inputs) {
        OperatorNode node;
        node.name = str(nodes.size());
        node.type = std::move(type);
        for (const int32_t v : inputs) node.inputs.push_back({v, false});
        nodes.push_back(std::move(node));
    };
    const auto background = [&](int count) {
        for (int i = 0; i < count; ++i) {
            std::vector<int32_t> inputs;
            for (int k = nodes.empty() ? 0 : 1 + below(3); k > 0; --k) inputs.push_back(outside());
            add(str("Bg", below(400)), inputs);
        }
    };
    std::vector<std::pair<int, bool>> plan;
    for (int p = 0; p < patterns; ++p)
        for (int i = 0; i < repeats + near; ++i) plan.emplace_back(p, i >= repeats);
    std::shuffle(plan.begin(), plan.end(), random);
    const int gap = std::max(2, (total - inside) / static_cast<int>(plan.size() + 1));
    background(gap);
    for (const auto& [p, is_near] : plan) {
        const int32_t base = static_cast<int32_t>(nodes.size()), change = 1 + below(made[p].size() - 1);
        std::vector<int32_t> others;
        for (int i = 0; i < 64; ++i) others.push_back(outside());
        std::set<std::string> names;
        for (size_t i = 0; i < made[p].size(); ++i) {
            const Part& part = made[p][i];
            std::vector<int32_t> inputs;
            for (const int32_t v : part.inner) inputs.push_back(base + v);
            for (int k = 0; k < part.outer; ++k) inputs.push_back(others[below(64)]);
            names.insert(str(nodes.size()));
            add((is_near && static_cast<int32_t>(i) == change ? "Changed" : "") + part.type, inputs);
        }
        if (!is_near) result.patterns[p].push_back(names);
        background(gap);
    }
    return result;
}

double overlap(const std::set<std::string>& a, const std::set<std::string>& b) {
    size_t both = 0;
    for (const std::string& x : a) both += b.contains(x);
    return static_cast<double>(both) / static_cast<double>(a.size() + b.size() - both);
}

// The share of the planted instances that were found, with nine tenths of their nodes; and of what was found that is
// planted.
std::pair<double, double> recall_and_precision(const Planted& p, const Judged& judged) {
    std::map<std::string, std::vector<size_t>> at;
    for (size_t i = 0; i < judged.instances.size(); ++i)
        for (const std::string& name : judged.instances[i]) at[name].push_back(i);
    size_t hits = 0, all = 0, right = 0;
    std::set<std::string> everything;
    for (const auto& instances : p.patterns)
        for (const auto& instance : instances) {
            ++all;
            everything.insert(instance.begin(), instance.end());
            hits += std::ranges::any_of(instance, [&](const std::string& name) {
                return std::ranges::any_of(at[name],
                                           [&](size_t i) { return overlap(judged.instances[i], instance) >= 0.9; });
            });
        }
    for (const auto& instance : judged.instances) {
        const auto inside =
            std::ranges::count_if(instance, [&](const auto& name) { return everything.contains(name); });
        right += 10 * static_cast<size_t>(inside) >= 9 * instance.size();
    }
    return {static_cast<double>(hits) / static_cast<double>(all),
            static_cast<double>(right) / static_cast<double>(std::max<size_t>(judged.instances.size(), 1))};
}

TEST(Substructures, NetworksAreFoldedAtLeastAsFarAsByTheirScopes) {
    struct Row {
        const char* file;
        double operators, exact;
    };
    for (const Row& row : {Row{"bert12.noscope.pb", 7.797, 7.797}, Row{"resnet50.noscope.pb", 5.297, 1.945},
                           Row{"mobilenetv2.pb", 6.619, 1.604}, Row{"lstm20.noscope.pb", 1.925, 1.92},
                           Row{"lenet.pb", 1, 1}, Row{"lenet_train.pb", 1.109, 1}, Row{"bert4_train.pb", 1.793, 1.806},
                           Row{"resnet50_train.pb", 1.72, 1.345}, Row{"bert12.mindir", 6.7, 6.7}}) {
        const OperatorGraph graph = graph_in(row.file);
        for (const auto& [equality, least] :
             {std::pair{Equality::operators, row.operators}, {Equality::exact, row.exact}}) {
            const Judged judged = judge(graph, found_in(graph, equality));
            EXPECT_EQ(judged.broken, std::vector<std::string>()) << row.file;
            EXPECT_GE(judged.compression, least) << row.file;
        }
    }
}

TEST(Substructures, LayersOfBertAreEqualInOrder) {
    const OperatorGraph graph = graph_in("bert12.noscope.pb");
    const auto found = find_substructures(graph, Equality::exact);
    EXPECT_EQ(found[0].instances.size(), 12u);
    EXPECT_EQ(found[0].instances[0].size(), 53u);
    EXPECT_EQ(found[0].gain(), 11 * 52 - 1);
    EXPECT_EQ(found[0].inside, (std::vector<int32_t>{1, 2}));
    // Exact: nothing is different but the parameters, which are no attributes.
    EXPECT_TRUE(describe(graph, found)[0].differences.empty());
}

TEST(Substructures, LabelsAreScopesOrOperators) {
    const OperatorGraph graph = graph_in("mobilenetv2.pb");
    const auto found = find_substructures(graph, Equality::operators);
    const auto about = describe(graph, found);
    EXPECT_EQ(about[0].label, "InvRes");
    EXPECT_FALSE(about[0].differences.empty());
    const OperatorGraph plain = graph_in("bert12.noscope.pb");
    // Three of its operators' types.
    const std::string label = describe(plain, find_substructures(plain, Equality::operators))[0].label;
    EXPECT_EQ(std::ranges::count(label, ','), 2) << label;
}

TEST(Substructures, OrderAndNumbersDoNotMatter) {
    std::mt19937 random(7);
    for (const char* file : {"bert12.noscope.pb", "resnet50.noscope.pb", "lstm20.noscope.pb", "bert4_train.pb"}) {
        const OperatorGraph graph = graph_in(file);
        const std::string json = found_in(graph);
        EXPECT_EQ(found_in(graph), json) << file;
        EXPECT_EQ(found_in(shuffled(graph, random)), json) << file;
        std::vector<std::string> names(graph.nodes.size());
        const OperatorGraph renamed = shuffled(graph, random, &names);
        const Judged a = judge(graph, json), b = judge(renamed, found_in(renamed));
        EXPECT_EQ(b.broken, std::vector<std::string>()) << file;
        EXPECT_EQ(a.compression, b.compression) << file;
        EXPECT_EQ(a.instances.size(), b.instances.size()) << file;
    }
}

// Copies of a grid, a ring, and a bipartite ring between equal users: nodes that can stand for each other, but not one
// by one. The order gives the same graph all the same.
OperatorGraph symmetric(int width, int height, int copies, int ring) {
    OperatorGraph graph;
    const auto add = [&](const char* type, std::vector<int32_t> inputs) {
        OperatorNode node{str(graph.nodes.size()), type, "", "", {}, {}};
        for (const int32_t v : inputs) node.inputs.push_back({v, false});
        graph.nodes.push_back(node);
        return static_cast<int32_t>(graph.nodes.size()) - 1;
    };
    for (int c = 0; c < copies; ++c)
        for (int i = 0; i < width * height; ++i) {
            std::vector<int32_t> inputs;
            const int32_t here = static_cast<int32_t>(graph.nodes.size());
            if (i >= width) inputs.push_back(here - width);
            if (i % width > 0) inputs.push_back(here - 1);
            add("Cell", inputs);
        }
    const int32_t first = static_cast<int32_t>(graph.nodes.size());
    for (int i = 0; i < ring; ++i) add("Ring", {first + (i + ring - 1) % ring});
    for (int c = 0; c < copies; ++c) {
        const int32_t a = add("Low", {}), b = add("Low", {});
        const int32_t middle = add("Middle", {a});
        for (int i = 1; i < 4; ++i) add("Middle", {i % 2 == 0 ? a : b});
        for (int i = 0; i < 4; ++i) add("High", {middle + i, middle + (i + 1) % 4});
    }
    return graph;
}

TEST(Substructures, NamesDecideOnlyBetweenNodesThatCanStandForEachOther) {
    const auto same = [](const OrderedGraph& a, const OrderedGraph& b) {
        const auto equal = [](const Edge& x, const Edge& y) { return x.node == y.node && x.code == y.code; };
        return a.label == b.label && a.input_start == b.input_start &&
               std::ranges::equal(a.input_edges, b.input_edges, equal);
    };
    std::mt19937 random(5);
    std::vector<OperatorGraph> graphs{graph_in("bert4_train.pb"), graph_in("resnet50_train.pb"),
                                      planted(4, 2000, 5, 10, 15, 3).graph};
    for (const auto& [width, height, copies, ring] :
         {std::array{5, 7, 4, 0}, {3, 3, 40, 60}, {1, 1, 500, 3}, {1, 20, 50, 400}})
        graphs.push_back(symmetric(width, height, copies, ring));
    for (size_t i = 0; i < graphs.size(); ++i)
        for (int k = 0; k < 3; ++k) {
            std::vector<std::string> names(graphs[i].nodes.size());
            EXPECT_TRUE(same(ordered_graph(graphs[i], Equality::operators),
                             ordered_graph(shuffled(graphs[i], random, &names), Equality::operators)))
                << "graph " << i;
        }
}

// LUNARIA_PLANTED: how many graphs; a second for 30.
TEST(Substructures, PlantedPatternsAreFound) {
    const char* given = std::getenv("LUNARIA_PLANTED");
    const int graphs = given ? std::atoi(given) : 30;
    std::mt19937 random(11);
    std::map<int, std::pair<double, double>> sums;
    std::map<int, int> counts;
    for (int i = 0; i < graphs; ++i) {
        const int near = i % 2 * 3;
        const Planted p = planted(1000 + i, 1500 + i % 7 * 400, 4 + i % 5, 10 + i % 6, 12 + i % 9, near);
        const std::string json = found_in(p.graph);
        const Judged judged = judge(p.graph, json);
        ASSERT_EQ(judged.broken, std::vector<std::string>()) << "graph " << i;
        ASSERT_EQ(found_in(shuffled(p.graph, random)), json) << "graph " << i;
        const auto [recall, precision] = recall_and_precision(p, judged);
        sums[near].first += recall;
        sums[near].second += precision;
        ++counts[near];
    }
    for (const auto& [near, sum] : sums) {
        const double least = near == 0 ? 0.98 : 0.95;
        EXPECT_GE(sum.first / counts[near], least) << "recall with " << near << " near-copies";
        EXPECT_GE(sum.second / counts[near], least) << "precision with " << near << " near-copies";
        std::printf("%d graphs, %d near-copies: recall %.4f, precision %.4f\n", counts[near], near,
                    sum.first / counts[near], sum.second / counts[near]);
    }
}

TEST(Substructures, CyclesHubsAndShortLayersAreGraphsToo) {
    OperatorGraph graph;
    const auto add = [&](const char* type, std::vector<int32_t> inputs) {
        OperatorNode node{str(graph.nodes.size()), type, "", "", {}, {}};
        for (const int32_t v : inputs) node.inputs.push_back({v, false});
        graph.nodes.push_back(node);
    };
    add("Hub", {});
    for (int32_t i = 0; i < 100; ++i) {
        const int32_t last = static_cast<int32_t>(graph.nodes.size()) - 1;
        add("Product", {last, 0, last});
        add("Sum", {last + 1, 0});
        add("Bend", {last + 2});
    }
    const int32_t ring = static_cast<int32_t>(graph.nodes.size());
    for (int32_t i = 0; i < 5; ++i) add("Ring", {ring + (i + 4) % 5});
    const Judged judged = judge(graph, found_in(graph));
    EXPECT_EQ(judged.broken, std::vector<std::string>());
    EXPECT_NEAR(judged.compression, 306.0 / 109, 1e-9);  // 100 boxes, one layer, six others
    EXPECT_EQ(found_in(OperatorGraph()), "{\n}\n");
}

TEST(Substructures, DamagedFilesAreErrorsOrGraphs) {
    std::mt19937 random(3);
    int errors = 0;
    for (const char* file : {"lenet_train.pb", "lstm20.noscope.pb"}) {
        const auto source = open_source(str("tests/core/insight/graphs/", file));
        const std::string bytes = source->text(0, static_cast<size_t>(source->size()));
        for (int i = 0; i < 60; ++i) {
            std::string damaged = bytes;
            for (int k = 0; k < 1 + i % 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
            if (i % 5 == 0) damaged.resize(random() % damaged.size());
            try {
                const OperatorGraph graph = read_operator_graph(*memory_source("damaged", damaged));
                EXPECT_EQ(judge(graph, found_in(graph)).broken, std::vector<std::string>());
            } catch (const Error&) {
                ++errors;
            }
        }
    }
    EXPECT_GT(errors, 20);
    EXPECT_THROW(read_operator_graph(*memory_source("empty", "")), Error);
}

}  // namespace
}  // namespace lunaria::insight
