#include "core/data/files/events.h"

#include <cmath>
#include <random>

#include "core/io/protobuf.h"
#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

std::string file_of(std::initializer_list<std::string> events) {
    StringSink sink;
    for (const std::string& event : events) append_frame(sink, event);
    return sink.text();
}

std::string event_of(int64_t step, const ProtoWriter& value) {
    ProtoWriter summary, event;
    summary.message(1, value);
    event.float64(1, 12.5).integer(2, step).message(5, summary);
    return event.text();
}

std::string scalar(int64_t step, float figure) {
    ProtoWriter value;
    value.bytes(1, "loss").float32(2, figure);
    return event_of(step, value);
}

std::vector<Event> all(const std::string& bytes, bool partial = false) {
    EventReader reader(memory_source("x.events", bytes), partial);
    std::vector<Event> events;
    while (auto event = reader.next()) events.push_back(std::move(*event));
    return events;
}

// The only value of an event.
Shown value_of(const ProtoWriter& value) { return all(file_of({event_of(1, value)})).at(0).values.at(0); }

ProtoWriter tensor_value(const ProtoWriter& tensor) {
    ProtoWriter value;
    value.bytes(1, "t").message(8, tensor);
    return value;
}

TEST(EventsTest, ScalarsComeWithTheirStepsAndTimes) {
    ProtoWriter version;
    version.float64(1, 1.0).bytes(3, "brain.Event:2");
    const auto events = all(file_of({version.text(), scalar(7, 0.5F), scalar(8, 0.25F)}));
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(events[0].version, "brain.Event:2");
    EXPECT_EQ(events[1].step, 7);
    EXPECT_EQ(events[1].wall_time, 12.5);
    EXPECT_EQ(events[1].values.at(0).tag, "loss");
    EXPECT_EQ(std::get<double>(events[2].values.at(0).value), 0.25);
}

TEST(EventsTest, TensorsOfBothKindsOfWritersAreRead) {
    const float elements[] = {1, 2, 3, 4, 5, 6};
    const std::string_view bytes(reinterpret_cast<const char*>(elements), sizeof elements);
    ProtoWriter rows, columns, shape, theirs, own;
    rows.integer(1, 2);
    columns.integer(1, 3);
    shape.message(2, rows).message(2, columns);
    theirs.integer(1, 1).message(2, shape).bytes(4, bytes);
    own.integer(1, 2).integer(1, 3).integer(2, 11).bytes(3, bytes);
    for (const ProtoWriter& tensor : {theirs, own}) {
        const Shown shown = value_of(tensor_value(tensor));
        EXPECT_EQ(shown.kind, "tensor");
        const auto& t = std::get<Tensor>(shown.value);
        EXPECT_EQ(t.shape(), Shape({2, 3}));
        EXPECT_EQ(t.at(5), 6);
    }
}

TEST(EventsTest, FiguresThatAreTensorsAreScalars) {
    ProtoWriter tensor, plugin, metadata;
    tensor.integer(1, 1).float32(5, 0.75F);
    plugin.bytes(1, "scalars");
    metadata.message(1, plugin);
    ProtoWriter value = tensor_value(tensor);
    value.message(9, metadata);
    const Shown shown = value_of(value);
    EXPECT_EQ(shown.kind, "scalar");
    EXPECT_EQ(std::get<double>(shown.value), 0.75);
}

TEST(EventsTest, ATensorOfMoreThanIsThereIsAnErrorAndTakesNoMemory) {
    ProtoWriter dim, shape, tensor;
    dim.integer(1, int64_t{1} << 40);
    shape.message(2, dim).message(2, dim).message(2, dim);
    tensor.integer(1, 1).message(2, shape).float32(5, 1.0F);
    EXPECT_NE(error_of([&] { value_of(tensor_value(tensor)); }).find("of 1 elements has an axis of 1099511627776"),
              std::string::npos);
}

TEST(EventsTest, ErrorsNameTheRecordAndTheOffset) {
    std::string bytes = file_of({scalar(1, 0.5F), scalar(2, 0.5F)});
    const size_t second = bytes.size() / 2;
    EXPECT_NE(error_of([&] { all(bytes.substr(0, bytes.size() - 5)); }).find(str("(offset ", second, ")")),
              std::string::npos);
    bytes[second + 14] = static_cast<char>(bytes[second + 14] ^ 1);
    EXPECT_NE(error_of([&] { all(bytes); }).find("record 1 is corrupt: the crc of its data is wrong"),
              std::string::npos);
}

TEST(EventsTest, AFileThatIsBeingWrittenMayEndWithinARecord) {
    const std::string bytes = file_of({scalar(1, 0.5F), scalar(2, 0.5F)});
    const size_t first = bytes.size() / 2;
    for (size_t size = 0; size <= bytes.size(); ++size)
        EXPECT_EQ(all(bytes.substr(0, size), true).size(), size == bytes.size() ? 2U : size >= first ? 1U : 0U) << size;
}

TEST(EventsTest, EveryBitThatFlipsIsFound) {
    const std::string bytes = file_of({scalar(1, 0.5F), scalar(2, 0.5F)});
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::string damaged = bytes;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
        EXPECT_NE(error_of([&] { all(damaged); }).find("offset"), std::string::npos) << bit;
    }
}

TEST(EventsTest, LandscapesAndFurtherMessagesAreKeptAsBytes) {
    ProtoWriter value, summary, event;
    value.bytes(1, "landscape_[1, 9]").bytes(10, "plane");
    summary.message(1, value);
    event.float64(1, 2.0).message(5, summary).bytes(6, "trained").bytes(10, "told").integer(7, 3);
    const Event read = read_event(event.text(), "x.events");
    EXPECT_EQ(read.values.at(0).kind, "landscape");
    EXPECT_EQ(std::get<Shown::Data>(read.values[0].value).bytes, "plane");
    EXPECT_EQ(read.others, (std::map<uint32_t, std::string>{{6, "trained"}, {10, "told"}}));
}

TEST(EventsTest, DamagedMessagesAreErrors) {
    std::mt19937 random(1);
    ProtoWriter histogram, value, dim, shape, tensor;
    for (const double limit : {1.0, 2.0}) histogram.float64(6, limit).float64(7, limit);
    dim.integer(1, 2);
    shape.message(2, dim);
    tensor.integer(1, 1).message(2, shape).bytes(4, "12345678");
    value.bytes(1, "w").message(5, histogram).message(8, tensor);
    const std::string event = event_of(3, value);
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
        std::string damaged = event.substr(0, event.size() - random() % 2 * random() % event.size());
        for (unsigned k = 1 + random() % 3; k > 0; --k)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        try {
            read_event(damaged, "x.events");
        } catch (const Error&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace lunaria
