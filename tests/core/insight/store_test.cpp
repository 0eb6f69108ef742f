// The store of runs: what files of events hold, while they grow, when they are damaged, and what is answered about
// them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/data/files/frames.h"
#include "core/insight/answers/answers.h"
#include "core/insight/answers/importance.h"
#include "core/insight/store/contents.h"
#include "core/insight/store/curve.h"
#include "core/io/protobuf.h"

namespace lunaria::insight {
namespace {

namespace fs = std::filesystem;

// A folder that is gone after the test.
struct Folder {
    fs::path path;
    Folder() {
        std::string name = (fs::temp_directory_path() / "insight-XXXXXX").string();
        path = mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path); }
};

std::string scalar(const std::string& tag, double value) {
    ProtoWriter v;
    v.bytes(1, tag).float32(2, static_cast<float>(value));
    return v.text();
}

std::string frame(double wall, int64_t step, const std::vector<std::string>& values) {
    ProtoWriter summary, event;
    for (const std::string& value : values) summary.bytes(1, value);
    event.float64(1, wall).integer(2, step).bytes(5, summary.text());
    StringSink sink;
    append_frame(sink, event.text());
    return sink.text();
}

void append(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::app | std::ios::binary) << bytes;
}

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Question question(const std::string& path, std::string method = "GET", std::string body = "") {
    Question q;
    q.method = std::move(method);
    q.body = std::move(body);
    std::string_view rest = path;
    const size_t query = rest.find('?');
    if (query != std::string_view::npos) {
        std::istringstream pairs{std::string(rest.substr(query + 1))};
        for (std::string pair; std::getline(pairs, pair, '&');)
            q.parameters.emplace(pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1));
    }
    std::istringstream parts{std::string(rest.substr(0, query))};
    for (std::string part; std::getline(parts, part, '/');) q.path.push_back(part);
    return q;
}

Json asked(Store& store, const std::string& path, const std::string& method = "GET", const std::string& body = "") {
    return Json::parse(answer(store, question(path, method, body)).body);
}

// The status of an answer, also of one that is thrown.
int status_of(Store& store, const std::string& path) {
    try {
        return answer(store, question(path)).status;
    } catch (const Refusal& refusal) {
        return refusal.status;
    }
}

TEST(InsightStore, WindowsHaveTheExtremesOfAllTheirPoints) {
    Folder folder;
    std::mt19937 random(7);
    std::vector<std::vector<Point>> written(2);
    std::string bytes;
    for (int64_t step = 0; step < 20'000; ++step) {
        std::vector<std::string> values;
        for (size_t tag = 0; tag < written.size(); ++tag) {
            double value = std::uniform_real_distribution<float>(-1, 1)(random);
            if (step % 777 == 3) value = step * 10.0;  // peaks
            if (step % 500 == 9) value = std::nan("");
            written[tag].push_back({step, 1.7e9 + static_cast<double>(step), static_cast<float>(value)});
            values.push_back(scalar(str("tag", tag), value));
        }
        bytes += frame(1.7e9 + static_cast<double>(step), step, values);
    }
    append(folder.path / "run" / "events.out.tfevents.1.host", bytes);
    Store store(folder.path, 0);
    ASSERT_TRUE(store.wait_until_loaded(std::chrono::seconds(20)));
    const auto view = store.view();
    const auto* run = view.run(id_of("run"));
    ASSERT_TRUE(run);
    EXPECT_EQ(run->tags(Kind::scalar), (std::vector<std::string>{"tag0", "tag1"}));
    for (int i = 0; i < 100; ++i) {
        const size_t tag = i % 2;
        double from = static_cast<double>(random() % 20'000), to = static_cast<double>(random() % 20'000);
        if (from > to) std::swap(from, to);
        const uint64_t points = 1 + random() % 3000;
        const Curve curve = curve_of(*run, str("tag", tag), {Axis::step, from, to}, points);
        uint64_t count = 0, counted = 0;
        double least = INFINITY, most = -INFINITY, min = INFINITY, max = -INFINITY;
        for (const Point& p : written[tag]) {
            if (static_cast<double>(p.step) < from || static_cast<double>(p.step) > to) continue;
            ++count;
            if (std::isnan(p.value)) continue;
            least = std::min(least, p.value);
            most = std::max(most, p.value);
        }
        for (const Point& p : curve.points)
            if (!std::isnan(p.value)) min = std::min(min, p.value), max = std::max(max, p.value);
        for (const Stretch& s : curve.stretches) {
            min = std::min(min, s.min);
            max = std::max(max, s.max);
            counted += s.count;
        }
        EXPECT_EQ(curve.count, count);
        EXPECT_EQ(curve.is_exact, count <= points);
        EXPECT_EQ(curve.is_exact ? curve.points.size() : counted, count);
        EXPECT_LE(curve.points.size() + curve.stretches.size(),
                  std::max<uint64_t>(points, count <= points ? count : points));
        EXPECT_EQ(min, least);
        EXPECT_EQ(max, most);
    }
}

TEST(InsightStore, PointsAppearWhileTheFileGrows) {
    Folder folder;
    const fs::path file = folder.path / "a" / "events.out.tfevents.1.host";
    append(file, frame(1, 1, {scalar("loss", 3)}));
    Store store(folder.path, 0.05);
    ASSERT_TRUE(store.wait_until_loaded(std::chrono::seconds(20)));
    const auto values = [&] {
        const auto view = store.view();
        std::vector<double> list;
        try {
            for (const Point& p : curve_of(*view.run(id_of("a")), "loss", {}, 100).points) list.push_back(p.value);
        } catch (const Error&) {
            // The file was replaced a moment ago.
        }
        return list;
    };
    EXPECT_EQ(values(), std::vector<double>{3});
    const std::string next = frame(2, 2, {scalar("loss", 2)});
    const auto wait = [&](size_t count) {
        for (int i = 0; i < 200 && values().size() != count; ++i) usleep(20'000);
        return values();
    };
    // Half a record is one that is being written.
    append(file, next.substr(0, 20));
    usleep(200'000);
    EXPECT_EQ(values(), std::vector<double>{3});
    append(file, next.substr(20));
    EXPECT_EQ(wait(2), (std::vector<double>{3, 2}));
    // A file in the place of another is read from its beginning.
    append(folder.path / "new", frame(3, 1, {scalar("loss", 9)}));
    fs::rename(folder.path / "new", file);
    EXPECT_EQ(wait(1), std::vector<double>{9});
    append(folder.path / "b" / "c" / "events.out.tfevents.2.host", next);
    for (int i = 0; i < 200 && store.view().runs().size() < 2; ++i) usleep(20'000);
    EXPECT_TRUE(store.view().run(id_of("b/c")));
}

TEST(InsightStore, LinksThatLeaveTheFolderAreNotFollowed) {
    Folder folder, other;
    append(other.path / "events.out.tfevents.1.host", frame(1, 1, {scalar("secret", 1)}));
    append(folder.path / "in" / "events.out.tfevents.1.host", frame(1, 1, {scalar("loss", 1)}));
    fs::create_directory_symlink(other.path, folder.path / "out");
    fs::create_symlink(other.path / "events.out.tfevents.1.host", folder.path / "in" / "events.out.tfevents.2.host");
    fs::create_directory_symlink(folder.path, folder.path / "in" / "circle");
    Store store(folder.path, 0);
    ASSERT_TRUE(store.wait_until_loaded(std::chrono::seconds(20)));
    const auto view = store.view();
    ASSERT_EQ(view.runs().size(), 1u);
    EXPECT_EQ(view.runs().begin()->second.name, "in");
    EXPECT_EQ(view.runs().begin()->second.tags(Kind::scalar), std::vector<std::string>{"loss"});
}

TEST(InsightStore, DamagedFilesAreReadUpToTheDamage) {
    Folder folder;
    std::mt19937 random(11);
    const std::string good = contents("tests/data/samples/tensorboard/events.out.tfevents.1795254806.vm.22422.0");
    ASSERT_GT(good.size(), 1000u);
    const char* asked_for = std::getenv("LUNARIA_MUTATIONS");
    const int count = asked_for ? std::atoi(asked_for) : 200;
    for (int i = 0; i < count; ++i) {
        std::string bad = good.substr(0, 12'000);
        if (i % 4 == 0) bad.resize(random() % bad.size());
        for (unsigned n = 0; n < 1 + random() % 4 && !bad.empty(); ++n)
            bad[random() % bad.size()] = static_cast<char>(random());
        const fs::path path = folder.path / "events.out.tfevents.x";
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
        EventFile file("x", path);
        while (file.refresh(1 << 20) && file.more()) continue;
        // The check sums are right in this one, so that the messages are damaged.
        StringSink sink;
        std::string event = good.substr(60, 400 + random() % 2000);
        for (unsigned n = 0; n < 8; ++n) event[random() % event.size()] = static_cast<char>(random());
        append_frame(sink, event);
        std::ofstream(path, std::ios::binary | std::ios::trunc) << sink.text();
        EventFile other("y", path);
        other.refresh(1 << 20);
        Lineage lineage;
        add_lineage(path, lineage);
    }
}

TEST(InsightStore, SamplesHaveTheValuesOfTheirManifests) {
    for (const char* name : {"events", "tensorboard"}) {
        const std::string folder = std::string("tests/data/samples/") + name;
        Store store(folder, 0);
        ASSERT_TRUE(store.wait_until_loaded(std::chrono::seconds(20)));
        const Json manifest = Json::parse(contents(folder + "/manifest.json"));
        const Json runs = asked(store, "v1/lunaria/runs")["runs"];
        ASSERT_EQ(runs.size(), 1u);
        const std::string run = "v1/lunaria/runs/" + runs[0]["id"].get<std::string>();
        const Json tags = asked(store, run + "/tags");
        ASSERT_GE(tags["scalars"].size(), 1u);
        const Json curve = asked(store, run + "/scalars/" + tags["scalars"][0]["id"].get<std::string>());
        const Json& expected = manifest["expected"];
        ASSERT_EQ(curve["value"].size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_EQ(curve["step"][i], expected[i]["step"]);
            EXPECT_EQ(curve["value"][i].get<double>(), expected[i]["loss"].get<double>());
        }
        for (const char* kind : {"images", "histograms", "tensors", "texts"})
            for (const Json& tag : tags[kind])
                EXPECT_EQ(asked(store, run + "/" + kind + "/" + tag["id"].get<std::string>()).size(), tag["count"]);
        // What programs for the reference product ask.
        const std::string reference = "v1/mindinsight/datavisual/";
        const Json job = asked(store, reference + "train-jobs?offset=0&limit=10")["train_jobs"][0];
        EXPECT_EQ(job["train_id"], "./");
        const std::string tag = tags["scalars"][0]["name"];
        const Json points = asked(store, reference + "scalar/metadata?train_id=./&tag=" + tag)["metadatas"];
        ASSERT_EQ(points.size(), expected.size());
        EXPECT_EQ(points[0]["value"], expected[0]["loss"]);
        EXPECT_EQ(asked(store, reference + "plugins?train_id=./")["plugins"]["scalar"][0], tag);
        if (!tags["tensors"].empty()) {
            const std::string tensor = tags["tensors"][0]["name"];
            const Json value = asked(store, reference + "tensors?train_id=./&detail=data&step=1&dims=[:,:]&tag=" +
                                                tensor)["tensors"][0]["values"][0]["value"];
            std::vector<double> flat;
            for (const Json& row : value["data"])
                for (const Json& element : row) flat.push_back(element);
            EXPECT_EQ(flat, expected[0]["tensor"].get<std::vector<double>>());
        }
    }
}

TEST(InsightStore, WhatIsNotThereIsRefused) {
    Store store("tests/data/samples/events", 0);
    for (const char* path : {"v1/lunaria/runs/0", "v1/lunaria/runs/../tags", "v1/lunaria", "v1/mindinsight/x", "..",
                             "a/b", "v1/lunaria/runs/0/scalars/1", "core"})
        EXPECT_EQ(status_of(store, path), 404) << path;
    EXPECT_EQ(status_of(store, "v1/mindinsight/datavisual/single-job?train_id=../../etc&plugin_name=scalar"), 400);
    EXPECT_EQ(status_of(store, "index.html"), 200);
}

TEST(InsightStore, NotesAreToldAndDeepOnesRefused) {
    Folder folder;
    append(folder.path / "a" / "events.out.tfevents.1.host", frame(1, 1, {scalar("x", 3)}));
    Store store(folder.path, 0);
    const std::string run = "v1/lunaria/runs/" + id_of("a");
    ASSERT_TRUE(store.wait_until_loaded(std::chrono::seconds(10)));
    const uint64_t before = store.view().version();
    asked(store, run, "PUT", R"({"notes": "good"})");
    // Nothing looks at the files any more: the change itself wakes what waits.
    EXPECT_GT(store.wait_for(before, std::chrono::seconds(10)), before);
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    EXPECT_TRUE(parsed_json(deep).is_discarded());
    EXPECT_FALSE(parsed_json("[[1, {\"a\": [2]}]]").is_discarded());
    EXPECT_EQ(dumped(Json("a\xff")), "\"a\uFFFD\"");
}

TEST(InsightStore, NotesStayInTheFolder) {
    Folder folder;
    append(folder.path / "a" / "events.out.tfevents.1.host", frame(1, 1, {scalar("<img onerror=alert(1)>", 3)}));
    for (int i = 0; i < 2; ++i) {
        Store store(folder.path, 0);
        const std::string run = "v1/lunaria/runs/" + id_of("a");
        if (i == 0) asked(store, run, "PUT", R"({"notes": "good \u00e4", "labels": ["best"]})");
        const Json about = asked(store, run);
        EXPECT_EQ(about["notes"], "good ä");
        EXPECT_EQ(about["labels"], Json::array({"best"}));
        EXPECT_EQ(asked(store, run + "/tags")["scalars"][0]["name"], "<img onerror=alert(1)>");
    }
}

// 200 runs: a setting with a quadratic effect and one with an effect by its word, which |r| does not see, among 4
// without.
TEST(Importance, EffectsThatAreNotMonotoneComeFirst) {
    int right = 0, planted = 0;
    for (unsigned seed = 0; planted < 20; ++seed) {
        std::mt19937 random(seed);
        std::normal_distribution<double> noise(0, 0.05);
        std::uniform_real_distribution<double> uniform(-1, 1);
        std::map<std::string, Table::Column> settings;
        Table::Column results;
        const std::pair<const char*, double> words[] = {
            {"adam", 0.25}, {"lamb", -0.2}, {"momentum", 0.225}, {"sgd", -0.25}};
        for (int i = 0; i < 200; ++i) {
            const double x = uniform(random);
            const auto& [word, effect] = words[random() % 4];
            settings["quadratic"].push_back(x);
            settings["word"].push_back(word);
            for (const char* name : {"a", "b", "c"}) settings[name].push_back(uniform(random));
            settings["d"].push_back(static_cast<int>(random() % 5));
            results.push_back(x * x + effect + noise(random));
        }
        if (importance_of(settings["quadratic"], results).pearson > 0.1) continue;
        ++planted;
        std::vector<std::pair<double, std::string>> order;
        for (const auto& [name, column] : settings)
            order.emplace_back(importance_of(column, results).association, name);
        std::ranges::sort(order, std::greater<>());
        const std::set<std::string> first = {order[0].second, order[1].second};
        right += first == std::set<std::string>{"quadratic", "word"};
    }
    EXPECT_GE(right, 19);
}

}  // namespace
}  // namespace lunaria::insight
