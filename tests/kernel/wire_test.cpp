#include "kernel/wire.h"

#include <gtest/gtest.h>

namespace lunaria::jupyter {
namespace {

constexpr const char* kScheme = "hmac-sha256";

// A message as a front end would send it, signed by another Wire with the same key.
zmq::multipart_t message(const nl::json& header, const std::string& key = "key") {
    const Wire wire(kScheme, key);
    return wire.write(xeus::xmessage({"client"}, header, nl::json::object(), nl::json::object(), {{"code", "1"}},
                                     {xeus::binary_buffer{'a', '\0'}}));
}

const nl::json kHeader = {{"msg_id", "1"}, {"msg_type", "execute_request"}};

std::string complaint(Wire& wire, const zmq::multipart_t& frames) {
    try {
        wire.read(frames);
        return "";
    } catch (const Refused& e) {
        return e.what();
    }
}

TEST(Wire, reads_what_it_writes) {
    Wire wire(kScheme, "key");
    const zmq::multipart_t frames = message(kHeader);
    const xeus::xmessage read = wire.read(frames);
    EXPECT_EQ(read.identities(), std::vector<std::string>{"client"});
    EXPECT_EQ(read.header(), kHeader);
    EXPECT_EQ(read.content()["code"], "1");
    ASSERT_EQ(read.buffers().size(), 1u);
    EXPECT_EQ(read.buffers()[0].size(), 2u);
}

TEST(Wire, refuses_replays_and_other_keys) {
    Wire wire(kScheme, "key");
    EXPECT_EQ(complaint(wire, message(kHeader)), "");
    EXPECT_EQ(complaint(wire, message(kHeader)), "the message was sent before");
    EXPECT_EQ(complaint(wire, message(kHeader, "other")), "the signature does not match");
    Wire open(kScheme, "");
    EXPECT_EQ(complaint(open, message(kHeader, "")), "");
    EXPECT_EQ(complaint(open, message(kHeader, "")), "");
}

TEST(Wire, counts_frames_before_it_reads_them) {
    Wire wire(kScheme, "key");
    const zmq::multipart_t whole = message(kHeader);
    for (size_t count = 0; count < 7; ++count) {
        zmq::multipart_t part;
        for (size_t i = 0; i < count; ++i) part.addstr(whole[i].to_string());
        EXPECT_NE(complaint(wire, part), "") << count;
    }
    zmq::multipart_t many;
    for (int i = 0; i < 20; ++i) many.addstr("id");
    for (size_t i = 1; i < whole.size(); ++i) many.addstr(whole[i].to_string());
    EXPECT_EQ(complaint(wire, many), "there are too many identities");
}

TEST(Wire, wants_objects_with_a_type_and_an_id) {
    Wire wire(kScheme, "");
    for (const char* header : {"", "[]", "1", "{\"msg_id\": 1, \"msg_type\": \"x\"}", "{\"msg_id\": \"x\"}"}) {
        zmq::multipart_t frames;
        for (const char* frame : {"<IDS|MSG>", "", header, "{}", "{}", "{}"}) frames.addstr(frame);
        EXPECT_NE(complaint(wire, frames), "") << header;
    }
}

TEST(Wire, measures_nesting_outside_of_strings) {
    EXPECT_TRUE(nests_at_most("[[1]]", 2));
    EXPECT_FALSE(nests_at_most("[[[1]]]", 2));
    EXPECT_TRUE(nests_at_most("[\"[[[[\", \"\\\"[[[\"]", 1));
    EXPECT_TRUE(nests_at_most("", 0));
    EXPECT_TRUE(nests_at_most("\"\\", 0));
}

}  // namespace
}  // namespace lunaria::jupyter
