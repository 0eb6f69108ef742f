#include "core/insight/answers/debug_desk.h"

#include <gtest/gtest.h>

#include <thread>

namespace lunaria::insight {
namespace {

Question command(const char* content) { return {"POST", {}, {}, content}; }

Answer state(DebugDesk& desk, const char* after = nullptr) {
    Question question{"GET", {}, {}, {}};
    if (after) question.parameters.emplace("after", after);
    return desk.answer(question);
}

int refusal_of(DebugDesk& desk, const Question& question) {
    try {
        desk.answer(question);
        return 0;
    } catch (const Refusal& refusal) {
        return refusal.status;
    }
}

TEST(DebugDesk, TellsWhatTheProgramSaid) {
    DebugDesk desk;
    EXPECT_EQ(state(desk).body, R"({"version":0,"state":"none","about":{}})");
    desk.run(R"({"step":1})");
    EXPECT_EQ(state(desk, "0").body, R"({"version":1,"state":"runs","about":{"step":1}})");
    desk.stand(R"({"step":2})");
    EXPECT_EQ(state(desk).body, R"({"version":2,"state":"stands","about":{"step":2}})");
}

TEST(DebugDesk, RefusesWhatItDoesNotUnderstand) {
    DebugDesk desk;
    EXPECT_EQ(refusal_of(desk, command(R"({"command":"node"})")), 409);
    for (const char* content : {"", "[", "[]", "{}", R"({"command":3})"})
        EXPECT_EQ(refusal_of(desk, command(content)), 400) << content;
    EXPECT_EQ(refusal_of(desk, {"GET", {"more"}, {}, {}}), 404);
    EXPECT_EQ(refusal_of(desk, {"PUT", {}, {}, {}}), 405);
}

TEST(DebugDesk, OnlyPausesAProgramThatRuns) {
    DebugDesk desk;
    desk.run("{}");
    EXPECT_FALSE(desk.take_pause());
    EXPECT_EQ(refusal_of(desk, command(R"({"command":"node"})")), 409);
    EXPECT_EQ(desk.answer(command(R"({"command":"pause"})")).status, 200);
    EXPECT_TRUE(desk.take_pause());
    EXPECT_FALSE(desk.take_pause());
}

TEST(DebugDesk, AProgramThatStandsAnswersCommandsInTheirOrder) {
    DebugDesk desk;
    desk.stand("{}");
    std::thread page([&] {
        EXPECT_EQ(desk.answer(command(R"({"command":"a"})")).body, "1");
        const Answer second = desk.answer(command(R"({"command":"b"})"));
        EXPECT_EQ(second.body, "2");
        EXPECT_EQ(second.status, 400);
    });
    EXPECT_EQ(desk.next(std::chrono::seconds(20)), R"({"command":"a"})");
    desk.reply("1");
    EXPECT_EQ(desk.next(std::chrono::seconds(20)), R"({"command":"b"})");
    desk.reply("2", 400);
    page.join();
    EXPECT_FALSE(desk.next(std::chrono::milliseconds(1)));
}

TEST(DebugDesk, WhatStillWaitsIsRefusedWhereTheProgramGoesOnOrTheServerEnds) {
    for (const bool ends : {false, true}) {
        DebugDesk desk;
        desk.stand("{}");
        std::thread taken([&] { EXPECT_EQ(refusal_of(desk, command(R"({"command":"a"})")), 409); });
        EXPECT_TRUE(desk.next(std::chrono::seconds(20)));
        std::thread waiting([&] { EXPECT_NE(refusal_of(desk, command(R"({"command":"b"})")), 0); });
        ends ? desk.close() : desk.run("{}");
        taken.join();
        waiting.join();
    }
}

}  // namespace
}  // namespace lunaria::insight
