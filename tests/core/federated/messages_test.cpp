#include "core/federated/messages.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

using namespace lunaria;
using namespace lunaria::federated::messages;

namespace {

template <class M>
std::string refusal(const std::string& bytes) {
    try {
        parsed<M>(bytes, "message");
    } catch (const Error& error) {
        return error.message();
    }
    return "";
}

Feature tensor() {
    Feature feature;
    feature.name = "w";
    feature.shape = {2, 3};
    feature.data.assign(24, 'x');
    return feature;
}

}  // namespace

TEST(MessagesTest, what_is_written_reads_back) {
    StartedFLJob started;
    started.is_selected = true;
    started.plan.aggregation = "FedAdam";
    started.plan.settings = R"({"lr":0.1})";
    started.plan.metrics = {"loss"};
    started.plan.extra = {tensor()};
    started.plan.cipher.type = "PW_ENCRYPT";
    started.plan.cipher.ring_bits = 56;
    started.model.features = {tensor()};
    started.model.features[0].is_aggregated = false;
    started.model.version = 7;
    const std::string bytes = written(started);
    const auto read = parsed<StartedFLJob>(bytes, "startFLJob");
    EXPECT_EQ(written(read), bytes);
    EXPECT_FALSE(read.model.features.at(0).is_aggregated);
    EXPECT_EQ(read.plan.extra.at(0).shape, (std::vector<int64_t>{2, 3}));
    Envelope envelope;
    envelope.job = "job";
    envelope.client = "client";
    envelope.iteration = 3;
    envelope.content = bytes;
    EXPECT_EQ(parsed<Envelope>(written(envelope), "envelope").content, bytes);
    EXPECT_NE(envelope.signed_bytes(kGetModel), envelope.signed_bytes(kStartFLJob));
}

TEST(MessagesTest, every_byte_that_is_cut_off_is_found) {
    Envelope envelope;
    envelope.job = "job";
    envelope.client = "client";
    envelope.content = "content";
    const std::string bytes = written(envelope);
    for (size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(refusal<Envelope>(bytes.substr(0, size)).empty()) << size;
}

TEST(MessagesTest, tensors_whose_bytes_do_not_fit_are_refused) {
    const auto refused = [](auto change) {
        FeatureMap map;
        map.features = {tensor()};
        change(map.features[0]);
        return refusal<FeatureMap>(written(map));
    };
    EXPECT_EQ(refused([](Feature&) {}), "");
    EXPECT_EQ(refused([](Feature& f) { f.data.pop_back(); }),
              "corrupt: tensor w has 23 bytes; its shape has 6 elements of float32");
    EXPECT_NE(refused([](Feature& f) { f.shape = {-2, -3}; }), "");
    EXPECT_NE(refused([](Feature& f) { f.shape = {int64_t{1} << 62, 4}; }), "") << "a product that overflows to 0";
    EXPECT_NE(refused([](Feature& f) { f.shape.assign(17, 1); }), "");
    EXPECT_NE(refused([](Feature& f) { f.type = static_cast<ElementType>(10); }), "");
    EXPECT_NE(refused([](Feature& f) { f.name.clear(); }), "");
    EXPECT_NE(refused([](Feature& f) { f.name = "a\nb"; }), "");
    EXPECT_NE(refused([](Feature& f) {
                  f.type = ElementType::quantised;
                  f.data.resize(6);
                  f.low = 1;
                  f.high = 0;
              }),
              "");
}

TEST(MessagesTest, lists_are_bounded) {
    // Each of these takes two bytes, and an object of a hundred.
    std::string bytes;
    for (size_t i = 0; i <= kMostParts; ++i) bytes += std::string("\x0a\x00", 2);
    EXPECT_NE(refusal<FeatureMap>(bytes).find("repeated too often"), std::string::npos);
    EXPECT_FALSE(refusal<Envelope>(std::string(kMostBytes + 1, '\0')).empty());
}
