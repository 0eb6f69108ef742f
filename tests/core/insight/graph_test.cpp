// Views of graphs: layers, groups, ways through hidden nodes, differences, and answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/data/files/frames.h"
#include "core/insight/answers/graphs.h"
#include "core/insight/graph/difference.h"
#include "core/insight/graph/graph_page.h"
#include "core/insight/graph_draft.h"

namespace lunaria::insight {
namespace {

using Json = nlohmann::json;

OperatorGraph graph_in(const std::string& file) {
    return read_operator_graph(*open_source("tests/core/insight/graphs/" + file));
}

std::string bytes_in(const std::string& file) {
    const auto source = open_source("tests/core/insight/graphs/" + file);
    return source->text(0, static_cast<size_t>(source->size()));
}

struct Builder {
    OperatorGraph graph;
    int32_t add(std::string type, const std::vector<int32_t>& inputs, std::string scope = "", std::string name = "") {
        OperatorNode node;
        const auto index = static_cast<int32_t>(graph.nodes.size());
        node.name = name.empty() ? str("n", index) : std::move(name);
        node.type = std::move(type);
        node.scope = std::move(scope);
        for (const int32_t v : inputs) node.inputs.push_back({v, false, -1});
        graph.nodes.push_back(std::move(node));
        return index;
    }
};

// Boxes do not overlap, and edges that are no back edges go down.
void expect_orderly(const Layering& layering, const Layering::Picture& picture,
                    const std::vector<Layering::Size>& sizes) {
    std::vector<int32_t> by_row(sizes.size());
    std::iota(by_row.begin(), by_row.end(), 0);
    std::ranges::sort(by_row, [&](int32_t a, int32_t b) {
        return std::pair(picture.y[a], picture.x[a]) < std::pair(picture.y[b], picture.x[b]);
    });
    for (size_t i = 0; i < by_row.size(); ++i) {
        const int32_t a = by_row[i];
        EXPECT_GE(picture.x[a], -0.5F);
        EXPECT_LE(picture.x[a] + sizes[a].width, picture.width + 0.5F);
        EXPECT_LE(picture.y[a] + sizes[a].height, picture.height + 0.5F);
        for (size_t k = i + 1; k < by_row.size() && picture.y[by_row[k]] < picture.y[a] + sizes[a].height; ++k) {
            const int32_t b = by_row[k];
            EXPECT_TRUE(picture.x[a] + sizes[a].width <= picture.x[b] + 0.5F ||
                        picture.x[b] + sizes[b].width <= picture.x[a] + 0.5F)
                << a << " and " << b << " overlap";
        }
    }
    for (size_t e = 0; e < layering.edges().size(); ++e) {
        const auto [from, to] = layering.edges()[e];
        const bool is_down = picture.y[from] + sizes[from].height <= picture.y[to] + 0.5F;
        EXPECT_TRUE(is_down || layering.way(e) == Layering::Way::back) << from << " to " << to;
        EXPECT_GE(picture.start[e + 1] - picture.start[e], 4U);
    }
}

TEST(Layering, BoxesDoNotOverlapAndEdgesGoDown) {
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
        const int n = 1 + static_cast<int>(random() % 120);
        std::vector<Layering::Edge> edges;
        std::set<std::pair<int, int>> known;
        for (int i = 0; i < n * 3 / 2; ++i) {
            int a = static_cast<int>(random() % n), b = static_cast<int>(random() % n);
            if (round % 3 && a > b) std::swap(a, b);  // every third one has cycles
            if (a != b && known.emplace(a, b).second) edges.push_back({a, b});
        }
        std::vector<Layering::Size> sizes;
        for (int i = 0; i < n; ++i)
            sizes.push_back({40 + static_cast<float>(random() % 300), 20 + static_cast<float>(random() % 90)});
        const Layering layering(n, edges);
        const Layering::Picture picture = layering.place(sizes);
        expect_orderly(layering, picture, sizes);
        std::ranges::reverse(edges);
        EXPECT_EQ(Layering(n, edges).place(sizes).x, picture.x);
        for (size_t e = 0; e < layering.edges().size() && round % 3; ++e)
            EXPECT_NE(layering.way(e), Layering::Way::back);
    }
}

TEST(Layering, ChainsAndFansOfAnyLength) {
    const int n = 300'000;
    std::vector<Layering::Edge> chain, fan;
    for (int i = 1; i < n; ++i) chain.push_back({i - 1, i});
    for (int i = 1; i < 5000; ++i) fan.push_back({0, i});
    const std::vector<Layering::Size> sizes(n, {100, 30});
    const Layering long_one(n, chain);
    const Layering::Picture picture = long_one.place(sizes);
    EXPECT_EQ(picture.width, 100);
    EXPECT_EQ(long_one.layers().back(), n - 1);
    for (int i = 1; i < n; ++i) ASSERT_GT(picture.y[i], picture.y[i - 1]);
    const Layering wide(5000, fan);
    const std::span some(sizes.data(), 5000);
    const Layering::Picture wrapped = wide.place(some);
    EXPECT_LT(wrapped.width, 12'000);
    expect_orderly(wide, wrapped, {some.begin(), some.end()});
    EXPECT_EQ(wide.way(17), Layering::Way::distant);
    EXPECT_EQ(Layering(0, {}).place({}).width, 0);
}

// Each node that is not hidden is in exactly one item of the view, and items lie inside of their groups.
void expect_whole(Scene& scene, const View& view) {
    const std::vector<int32_t> item_of = scene.items_of(view);
    for (int32_t v = 0; v < scene.model().size(); ++v) EXPECT_EQ(item_of[v] < 0, scene.is_hidden(v)) << v;
    for (size_t i = 0; i < view.items.size(); ++i) {
        const View::Item& item = view.items[i];
        if (item.parent < 0) continue;
        const View::Item& group = view.items[item.parent];
        EXPECT_LT(item.parent, static_cast<int32_t>(i));
        EXPECT_GE(item.x, group.x);
        EXPECT_GE(item.y, group.y);
        EXPECT_LE(item.x + item.width, group.x + group.width + 0.5F);
        EXPECT_LE(item.y + item.height, group.y + group.height + 0.5F);
    }
    for (const View::Edge& e : view.edges) EXPECT_EQ(view.items[e.from].parent, view.items[e.to].parent);
}

TEST(GraphViews, EveryNodeIsShownOnceHoweverGroupsAreOpened) {
    std::mt19937 random(2);
    for (const char* file : {"lenet_train.pb", "bert4_train.pb", "bert12.mindir", "lstm20.noscope.pb"}) {
        const GraphModel model(graph_in(file), file);
        for (const Grouping grouping : {Grouping::scopes, Grouping::parts, Grouping::none})
            for (const uint8_t hidden : {0, kPlumbing | kConstant | kParameter, kGradient | kOptimizer | kInput}) {
                Scene scene(model, grouping, hidden);
                std::set<int32_t> all, some;
                for (size_t g = 1; g < scene.tree().groups.size(); ++g) {
                    all.insert(static_cast<int32_t>(g));
                    if (random() % 2) some.insert(static_cast<int32_t>(g));
                }
                for (const auto& open : {std::set<int32_t>(), scene.first_open(), some, all})
                    expect_whole(scene, scene.view(open));
                // What was opened in between leaves no traces.
                Scene fresh(model, grouping, hidden);
                EXPECT_EQ(bytes_of(scene, scene.view(some)), bytes_of(fresh, fresh.view(some)));
            }
    }
}

TEST(GraphViews, WrongScopesAreRepairedByEqualParts) {
    const GraphModel model(graph_in("bert12.mindir"), "bert");
    EXPECT_EQ(model.parts().repaired, 132U);
    std::map<std::string, int> gelus;
    for (int32_t v = 0; v < model.operators(); ++v)
        if (model.type_of(v) == "GeLU") ++gelus[model.scope_of(v)];
    // The file has all of them in the first layer.
    EXPECT_EQ(gelus.size(), 12U);
    EXPECT_EQ(GraphModel(graph_in("resnet50_train.pb"), "r").parts().scopes.size(), 1502U);
}

TEST(GraphViews, HiddenPlumbingIsPassedThrough) {
    Builder b;
    const int32_t source = b.add("Conv", {});
    int32_t last = source;
    for (int i = 0; i < 100'000; ++i) last = b.add("Depend", {last});
    const int32_t other = b.add("Mul", {});
    const int32_t tuple = b.add("MakeTuple", {last, other});
    const int32_t user = b.add("Add", {tuple});
    const GraphModel model(std::move(b.graph), "plumbing");
    Scene scene(model, Grouping::none, kPlumbing);
    const View view = scene.view({});
    ASSERT_EQ(view.items.size(), 3U);
    ASSERT_EQ(view.edges.size(), 2U);
    for (const View::Edge& e : view.edges) EXPECT_EQ(view.items[e.to].id, user);
    EXPECT_EQ(model.reach(user, true).size(), 100'003U);
    EXPECT_EQ(model.route(source, user).size(), 100'003U);
    EXPECT_EQ(model.route(user, source).size(), 100'003U);
    EXPECT_TRUE(model.route(source, other).empty());
}

TEST(GraphViews, ManyChildrenAndDeepScopesAreShown) {
    Builder b;
    std::string deep = "root";
    int32_t last = -1;
    for (int i = 0; i < 400; ++i) {
        deep += str("/level", i);
        last = b.add("Step", {last}, deep);
    }
    for (int i = 0; i < 5000; ++i) b.add("Child", {last}, "root/many");
    const GraphModel model(std::move(b.graph), "large");
    Scene scene(model, Grouping::scopes, 0);
    std::set<int32_t> all;
    for (size_t g = 1; g < scene.tree().groups.size(); ++g) all.insert(static_cast<int32_t>(g));
    const View view = scene.view(all);
    expect_whole(scene, view);
    EXPECT_GE(view.items.size(), 5400U);
    EXPECT_GT(scene.tree().groups.size(), 240U);
}

// The same graph with other names, in another order.
OperatorGraph shuffled(const OperatorGraph& graph, std::mt19937& random) {
    std::vector<int32_t> order(graph.nodes.size()), place(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
    OperatorGraph result;
    result.values = graph.values;
    for (const int32_t v : order) {
        OperatorNode& node = result.nodes.emplace_back(graph.nodes[v]);
        node.name = str(1000 + random() % 1000, '0', result.nodes.size());
        for (auto& input : node.inputs)
            if (input.node >= 0) input.node = place[input.node];
    }
    return result;
}

TEST(GraphDifference, IsFoundWhateverNamesAndOrderAre) {
    std::mt19937 random(9);
    for (const char* file : {"resnet50.noscope.pb", "bert12.noscope.pb", "lenet_train.pb"}) {
        const OperatorGraph graph = graph_in(file);
        const GraphModel before(graph, "before");
        const GraphDifference none = difference_of(before, GraphModel(shuffled(graph, random), "after"));
        EXPECT_EQ(std::tuple(none.added.size(), none.removed.size(), none.changed.size()), std::tuple(0U, 0U, 0U))
            << file;
        // An operator has another type, one another attribute, one is put in, and one is taken out at the end.
        OperatorGraph other = graph;
        const size_t middle = other.nodes.size() / 2;
        other.nodes[middle].type = "Other";
        other.nodes[middle + 20].attributes.emplace_back("zz", "3");
        OperatorNode made;
        made.name = "made";
        made.type = "Made";
        const size_t user = middle + 40;
        auto input = std::ranges::find_if(other.nodes[user].inputs, [](const auto& i) { return i.node >= 0; });
        ASSERT_NE(input, other.nodes[user].inputs.end());
        made.inputs.push_back(*input);
        input->node = static_cast<int32_t>(other.nodes.size());
        other.nodes.push_back(made);
        const GraphModel after(shuffled(other, random), "after");
        const GraphDifference d = difference_of(before, after);
        EXPECT_EQ(d.removed.size(), 0U) << file;
        ASSERT_EQ(d.added.size(), 1U) << file;
        EXPECT_EQ(after.type_of(d.added[0]), "Made");
        std::map<std::string, int> names;
        for (const auto& change : d.changed)
            for (const auto& value : change.values) ++names[value.name];
        EXPECT_EQ(names["type"], 1) << file;
        EXPECT_EQ(names["zz"], 1) << file;
        EXPECT_EQ(names["inputs"], 1) << file;
    }
}

TEST(GraphFiles, EventsHoldGraphs) {
    // MindSpore's: the graph of a .pb file as a field of an event.
    const std::string model = bytes_in("lenet_train.pb");
    std::string_view graph;
    for (ProtoReader p(model, "lenet"); p.next();)
        if (p.field() == 4) graph = p.bytes();
    const auto file_of = [](std::string_view content) {
        StringSink sink;
        append_frame(sink, ProtoWriter().float64(1, 3.5).bytes(3, "MindSpore.Event:1").text());
        append_frame(sink, ProtoWriter().float64(1, 3.5).bytes(4, content).text());
        return sink.text();
    };
    const std::string events = file_of(graph);
    const OperatorGraph read = read_operator_graph(*memory_source("events", events));
    EXPECT_EQ(read.nodes.size(), 132U);
    EXPECT_EQ(json_of(read, find_substructures(read, Equality::exact)),
              json_of(graph_in("lenet_train.pb"), find_substructures(graph_in("lenet_train.pb"), Equality::exact)));
    // TensorBoard's.
    ProtoWriter def;
    const auto node = [&](const char* name, const char* op, std::initializer_list<const char*> inputs) {
        ProtoWriter w;
        w.bytes(1, name).bytes(2, op);
        for (const char* input : inputs) w.bytes(3, input);
        def.message(1, w.message(5, ProtoWriter().bytes(1, "T").message(2, ProtoWriter().integer(3, 7))));
    };
    node("x", "Placeholder", {});
    node("net/a", "MatMul", {"x", "missing"});
    node("net/<b>\"", "Relu", {"net/a:1", "^x"});
    const std::string other = file_of(def.text());
    const OperatorGraph made = read_operator_graph(*memory_source("events", other));
    ASSERT_EQ(made.nodes.size(), 2U);
    EXPECT_EQ(made.nodes[1].scope, "net");
    EXPECT_EQ(made.nodes[1].inputs[0].node, 0);
    EXPECT_TRUE(made.nodes[1].inputs[1].is_control);
    EXPECT_EQ(made.nodes[1].inputs[1].value, 0);
    EXPECT_EQ(made.nodes[0].attributes[0].second, "7");
    // Hostile names are text in pictures.
    GraphPage page(made, "<img>");
    const std::string svg =
        page.with_view({}, [](const Scene& scene, const View& view) { return svg_of(scene, view, {}); });
    EXPECT_NE(svg.find("net/&lt;b&gt;&quot;"), std::string::npos);
    EXPECT_EQ(svg.find("<b>"), std::string::npos);
    // Damaged ones are errors or graphs.
    std::mt19937 random(4);
    int errors = 0;
    for (int i = 0; i < 200; ++i) {
        std::string damaged = i % 2 ? std::string(graph) : def.text();
        for (int k = 0; k < 1 + i % 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
        if (i % 5 == 0) damaged.resize(random() % damaged.size());
        const std::string file = file_of(damaged);
        try {
            GraphPage broken(read_operator_graph(*memory_source("damaged", file)), "damaged");
            Question question{"GET", {"view"}, {{"open", "all"}, {"hide", "nothing"}}, "", false};
            EXPECT_EQ(broken.answer(question).body.substr(0, 4), "LGV1");
        } catch (const Error&) {
            ++errors;
        }
    }
    EXPECT_GT(errors, 20);
}

Json asked(GraphPage& page, std::vector<std::string> path,
           std::multimap<std::string, std::string, std::less<>> parameters, std::string method = "GET",
           std::string body = "") {
    return Json::parse(
        page.answer({std::move(method), std::move(path), std::move(parameters), std::move(body), false}).body);
}

TEST(GraphPage, AnswersWhatItsPageAsks) {
    GraphPage page(graph_in("bert4_train.pb"), "bert4");
    const Json about = asked(page, {}, {});
    EXPECT_EQ(about["operators"], 771);
    EXPECT_EQ(about["by"], "scopes");
    const Json found = asked(page, {"names"}, {{"q", "SOFTMAX"}, {"limit", "5"}});
    ASSERT_EQ(found["nodes"].size(), 5U);
    EXPECT_EQ(found["nodes"][0]["type"], "Softmax");
    const int id = found["nodes"][0]["id"];
    const Json node = asked(page, {"nodes", str(id)}, {});
    EXPECT_GE(node["inputs"]["count"], 1);
    EXPECT_EQ(node["equal"]["nodes"].size(), 4U);
    const int group = found["nodes"][0]["path"].back();
    const Json in_group = asked(page, {"groups", str(group)}, {});
    EXPECT_EQ(in_group["id"], group);
    EXPECT_GE(in_group["operators"], 1);
    const Json up = asked(page, {"reach"}, {{"node", str(id)}, {"way", "up"}, {"open", "all"}});
    EXPECT_GT(up["items"].size(), 10U);
    EXPECT_GE(up["count"], up["items"].size());
    const int from = up["nodes"][3]["id"];
    const Json way = asked(page, {"route"}, {{"from", str(from)}, {"to", str(id)}});
    EXPECT_GE(way["nodes"].size(), 2U);
    EXPECT_EQ(way["nodes"].back()["id"], id);
    EXPECT_GE(asked(page, {"parts"}, {})["parts"].size(), 4U);
    const std::string name = found["nodes"][0]["name"];
    const Json overlay = asked(page, {"overlay"}, {}, "POST", Json{{name, 2.5}, {"nothing", 1}}.dump());
    EXPECT_EQ(overlay["known"], 1);
    EXPECT_EQ(overlay["groups"][str(group)], 2.5);
    EXPECT_EQ(asked(page, {"json"}, {})["nodes"].size(), about["nodes"].get<size_t>());
    const std::string view = page.answer({"GET", {"view"}, {{"open", "auto"}}, "", false}).body;
    uint32_t counts[4];
    std::memcpy(counts, view.data() + 4, sizeof counts);
    const auto [items, edges, points, text] = std::tuple(counts[0], counts[1], counts[2], counts[3]);
    EXPECT_EQ(view.size(), 32 + items * (7 * 4 + 8 + 2) + 4 + edges * (4 * 4 + 1) + 4 + points * 4 + text);
    for (const auto& [path, parameters, status] :
         std::vector<std::tuple<std::vector<std::string>, std::multimap<std::string, std::string, std::less<>>, int>>{
             {{"nothing"}, {}, 404},
             {{"view"}, {{"by", "names"}}, 400},
             {{"view"}, {{"hide", "all"}}, 400},
             {{"view"}, {{"open", "99999"}}, 404},
             {{"nodes", "-1"}, {}, 404},
             {{"nodes", "../x"}, {}, 404},
             {{"reach"}, {{"node", "1"}, {"way", "side"}}, 400}})
        try {
            page.answer({"GET", path, parameters, "", false});
            ADD_FAILURE() << path[0];
        } catch (const Refusal& refusal) {
            EXPECT_EQ(refusal.status, status) << path[0];
        }
}

TEST(GraphPage, GraphsOfRunsAreFoundAndKept) {
    const auto base = std::filesystem::path(testing::TempDir()) / "graphs_of_runs";
    std::filesystem::remove_all(base);
    std::filesystem::create_directories(base / "run");
    for (const char* name : {"lenet.pb", "lenet_train.pb"})
        std::filesystem::copy_file(std::filesystem::path("tests/core/insight/graphs") / name, base / "run" / name);
    std::ofstream(base / "run" / "broken.pb") << "no graph";
    Store store(base.string(), 0);
    const auto ask = [&](std::vector<std::string> path, std::string method = "GET") {
        path.insert(path.begin(), {"v1", "lunaria"});
        return Json::parse(answer(store, {std::move(method), std::move(path), {}, "{}", false}).body);
    };
    const std::string run = ask({"runs"})["runs"][0]["id"];
    std::map<std::string, std::string> ids;
    for (const Json& graph : ask({"runs", run, "graphs"})) ids[graph["name"]] = graph["id"];
    ASSERT_EQ(ids.size(), 3U);
    EXPECT_EQ(ask({"graphs", ids["lenet_train.pb"]})["operators"], 132);
    EXPECT_EQ(ask({"graphs", ids["lenet.pb"], "diff", ids["lenet_train.pb"]})["added"].size(), 106U);
    EXPECT_EQ(ask({"graphs", ids["lenet.pb"], "overlay"}, "POST")["known"], 0);
    const Question nodes{"GET", {"nodes"}, {{"train_id", "./run"}, {"tag", "lenet.pb"}}, "", false};
    EXPECT_EQ(reference_graph_answer(store, nodes).status, 200);
    const auto status_of = [&](std::vector<std::string> path, const std::string& method = "GET") {
        try {
            ask(std::move(path), method);
            return 200;
        } catch (const Refusal& refusal) {
            return refusal.status;
        }
    };
    EXPECT_EQ(status_of({"graphs", ids["broken.pb"]}), 422);
    EXPECT_EQ(status_of({"graphs", "../lenet.pb"}), 404);
    EXPECT_EQ(status_of({"graphs", ids["lenet.pb"], "diff", "nothing"}), 404);
    EXPECT_EQ(status_of({"graphs", ids["lenet.pb"], "view"}, "POST"), 405);
    std::filesystem::remove_all(base);
}

TEST(GraphPage, AnswersWhatProgramsForTheReferenceProductAsk) {
    const GraphPage page(graph_in("lenet_train.pb"), "lenet");
    const auto ask = [&](std::vector<std::string> path,
                         std::multimap<std::string, std::string, std::less<>> parameters) {
        return Json::parse(page.reference_answer({"GET", std::move(path), std::move(parameters), "", false}).body);
    };
    const Json root = ask({"nodes"}, {});
    std::map<std::string, Json> nodes;
    for (const Json& node : root["nodes"]) nodes[node["name"]] = node;
    EXPECT_EQ(nodes["Default"]["type"], "name_scope");
    EXPECT_GT(nodes["Default"]["subnode_count"], 3);
    EXPECT_TRUE(nodes.contains("Gradients"));
    const Json inner = ask({"nodes"}, {{"name", "Default/network-WithLoss/net-Lenet/conv1-Conv2d"}});
    const auto conv = std::ranges::find_if(inner["nodes"], [](const Json& n) { return n["type"] == "Conv2D"; });
    ASSERT_NE(conv, inner["nodes"].end());
    const std::string name = (*conv)["name"];
    EXPECT_TRUE(name.starts_with("Default/network-WithLoss/net-Lenet/conv1-Conv2d/Conv2D-op")) << name;
    EXPECT_GE((*conv)["input"].size(), 2U);
    EXPECT_EQ((*conv)["output"].begin().value()["data_type"], "float32");
    EXPECT_EQ((*conv)["output"].begin().value()["shape"].size(), 4U);
    EXPECT_EQ(ask({"nodes", "names"}, {{"search", "Conv2D-op"}, {"limit", "1000"}})["names"].size(), 2U);
    EXPECT_EQ(ask({"nodes", "names"}, {{"search", ""}, {"limit", "7"}, {"offset", "1"}})["names"].size(), 7U);
    Json level = ask({"single-node"}, {{"name", name}});
    int levels = 0;
    for (; level.contains("nodes") && !level["nodes"].empty(); level = Json(level["children"])) ++levels;
    EXPECT_EQ(levels, 5);
    EXPECT_EQ(ask({"nodes", "all"}, {})["nodes"].size(), 177U);
    EXPECT_LT(ask({"nodes", "all"}, {{"mode", "optimized"}})["nodes"].size(), 100U);
    EXPECT_THROW(ask({"nodes"}, {{"name", "../nothing"}}), Refusal);
    EXPECT_THROW(ask({"nodes", "names"}, {{"limit", "-1"}}), Refusal);
}

}  // namespace
}  // namespace lunaria::insight
