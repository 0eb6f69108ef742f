// The checks of servers, and requests of any bytes.
#include "interpreter/serve/site.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/insight/answers/answers.h"

namespace lunaria::serve {
namespace {

HttpRequest request(std::string target,
                    std::vector<std::pair<std::string, std::string>> headers = {{"Host", "localhost:8080"}},
                    std::string method = "GET", std::string body = "") {
    return {std::move(method), std::move(target), std::move(headers), std::move(body)};
}

Site site(SiteOptions options = {}) {
    return Site(
        [](const Question& question) {
            Answer answer;
            for (const std::string& part : question.path) answer.body += "[" + part + "]";
            return answer;
        },
        std::move(options));
}

std::string header(const Answer& answer, const std::string& name) {
    for (const auto& [header, value] : answer.headers)
        if (header == name) return value;
    return {};
}

TEST(Serve, OnlyItsOwnNamesAreAnswered) {
    const Site local = site({.hosts = {"gpu7.example"}});
    for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:80", "gpu7.example:8080"})
        EXPECT_EQ(local.answer(request("/", {{"Host", host}})).status, 200) << host;
    for (const char* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                             "localhost:80@evil", "[::1", "localhost:", "127.0.0.2"})
        EXPECT_EQ(local.answer(request("/", {{"Host", host}})).status, 403) << host;
    EXPECT_EQ(local.answer(request("/", {})).status, 403);
    EXPECT_EQ(local.answer(request("/", {{"Host", "localhost"}, {"host", "evil.example"}})).status, 403);
}

TEST(Serve, PagesOfOtherSitesAreRefused) {
    const Site local = site();
    const auto from = [&](const char* origin, const char* method) {
        return local
            .answer(request("/", {{"Host", "localhost:8080"}, {"Origin", origin}, {"Content-Type", "application/json"}},
                            method))
            .status;
    };
    for (const char* method : {"GET", "POST", "PUT"}) {
        EXPECT_EQ(from("http://localhost:8080", method), 200);
        for (const char* origin : {"http://evil.example", "null", "http://localhost:3000", "http://localhost", ""})
            EXPECT_EQ(from(origin, method), 403) << origin;
    }
    EXPECT_EQ(local.answer(request("/", {{"Host", "localhost"}, {"Content-Type", "text/plain"}}, "POST")).status, 415);
    // The type that is checked is the one that the question has.
    EXPECT_EQ(taken_apart(request("/", {{"content-type", "a/b"}, {"Content-Type", "c/d"}}, "POST")).content_type,
              "a/b");
    EXPECT_EQ(local.answer(request("/", {{"Host", "localhost"}}, "DELETE")).status, 405);
    EXPECT_EQ(
        local
            .answer(request(
                "/", {{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}, {"Content-Type", "application/json"}},
                "POST"))
            .status,
        403);
}

TEST(Serve, ATokenOpensOnce) {
    const Site away = site({.token = "0123456789abcdef"});
    EXPECT_EQ(away.answer(request("/x")).status, 401);
    EXPECT_EQ(away.answer(request("/x?token=0123456789abcdee")).status, 401);
    const Answer opened = away.answer(request("//evil.example/x?token=0123456789abcdef"));
    EXPECT_EQ(opened.status, 303);
    EXPECT_EQ(header(opened, "Location"), "/evil.example/x");
    const std::string cookie = header(opened, "Set-Cookie");
    EXPECT_NE(cookie.find("SameSite=Strict; HttpOnly"), std::string::npos);
    EXPECT_EQ(
        away.answer(request("/x", {{"Host", "localhost"}, {"Cookie", "a=b; " + cookie.substr(0, cookie.find(';'))}}))
            .status,
        200);
    EXPECT_EQ(away.answer(request("/x", {{"Host", "localhost"}, {"Authorization", "Bearer 0123456789abcdef"}})).status,
              200);
}

TEST(Serve, EveryAnswerIsProtected) {
    for (const char* target : {"/", "/x", "nothing"}) {
        const Answer answer = site({.prefix = "/p"}).answer(request(target));
        EXPECT_NE(header(answer, "Content-Security-Policy").find("default-src 'self'"), std::string::npos);
        EXPECT_EQ(header(answer, "Content-Security-Policy").find("unsafe"), std::string::npos);
        EXPECT_EQ(header(answer, "X-Content-Type-Options"), "nosniff");
        EXPECT_EQ(header(answer, "Cache-Control"), "no-store");
    }
}

TEST(Serve, AddressesAreTakenApart) {
    const Site prefixed = site({.prefix = "/a/b"});
    EXPECT_EQ(prefixed.answer(request("/a/b/c%20d/%2e%2e/?x=1")).body, "[c d][..]");
    EXPECT_EQ(prefixed.answer(request("/a/b")).status, 308);
    EXPECT_EQ(prefixed.answer(request("/a/bc")).status, 404);
    const Question question = taken_apart(request("/%zz/%?a=1+2&a=%41&b&=3#f"));
    EXPECT_EQ(question.path, (std::vector<std::string>{"%zz", "%"}));
    EXPECT_EQ(question.all("a"), (std::vector<std::string>{"1 2", "A"}));
    EXPECT_EQ(question.parameter("b"), "");
}

// Requests made of parts of real ones and of any bytes. LUNARIA_REQUESTS: how many.
TEST(Serve, AnyRequestHasAnAnswer) {
    const char* asked = std::getenv("LUNARIA_REQUESTS");
    const int count = asked ? std::atoi(asked) : 20'000;
    insight::Store store("tests/data/samples", 0);
    ASSERT_TRUE(store.wait_until_loaded(std::chrono::seconds(30)));
    const Site local([&](const Question& question) { return insight::answer(store, question); }, {});
    std::mt19937 random(5);
    std::vector<std::string> words = {
        "v1",         "lunaria",       "mindinsight", "runs",    "tags",       "scalars",  "images",
        "histograms", "tensors",       "texts",       "0",       "..",         "%2e%2e",   "%00",
        "datavisual", "train-jobs",    "single-job",  "plugins", "scalar",     "metadata", "lineagemgr",
        "lineages",   "optimizer",     "targets",     "search",  "importance", "profile",  "lineage",
        "datasets",   "dataset_graph", "index.html",  ""};
    for (const auto& [id, run] : store.view().runs()) {
        words.push_back(id);
        for (const insight::Kind kind :
             {insight::Kind::scalar, insight::Kind::image, insight::Kind::tensor, insight::Kind::histogram})
            for (const std::string& tag : run.tags(kind)) words.push_back(insight::id_of(tag));
    }
    const std::vector<std::string> parameters = {
        "points=",     "from=", "to=",   "axis=wall",   "axis=",  "dims=",   "format=csv",         "train_id=./events",
        "train_id=",   "tag=",  "step=", "detail=data", "limit=", "offset=", "plugin_name=scalar", "target=loss",
        "interval_id="};
    const std::vector<std::string> values = {"",  "0",   "-1",  "1e308", "nan", "999999999999999999999",
                                             "x", ":,:", "%ff", "inf",   "3"};
    const std::vector<std::string> bodies = {"",
                                             "{}",
                                             "[",
                                             "{\"limit\": -1}",
                                             "{\"sorted_name\": \"loss\"}",
                                             "{\"loss\": {\"lt\": 1}}",
                                             "{\"notes\": 3}",
                                             "{\"loss\": 3}",
                                             std::string(3000, '['),
                                             "{\"metric/accuracy\": {\"in\": [1]}}"};
    const auto any = [&](const auto& list) -> const auto& { return list[random() % list.size()]; };
    for (int i = 0; i < count; ++i) {
        std::string target;
        if (random() % 2)
            target = any(std::vector<std::string>{"/v1/lunaria/runs", "/v1/mindinsight/datavisual", "/v1/mindinsight"});
        for (unsigned n = random() % 6; n > 0; --n) target += "/" + any(words);
        for (unsigned n = random() % 4, k = 0; k < n; ++k)
            target += (k == 0 ? "?" : "&") + any(parameters) + any(values);
        if (random() % 8 == 0 && !target.empty()) target[random() % target.size()] = static_cast<char>(random());
        const bool writes = random() % 4 == 0;
        HttpRequest one = request(target, {{"Host", "localhost"}}, writes ? (random() % 2 ? "POST" : "PUT") : "GET",
                                  writes ? any(bodies) : "");
        if (writes) one.headers.emplace_back("Content-Type", "application/json");
        // Notes would be written beside the samples.
        if (one.method == "PUT") one.body = any(std::vector<std::string>{"[", "{\"notes\": 3}", "3"});
        const Answer answer = local.answer(one);
        EXPECT_TRUE(answer.status >= 200 && answer.status < 500)
            << answer.status << " " << target << " " << answer.body;
    }
}

}  // namespace
}  // namespace lunaria::serve
