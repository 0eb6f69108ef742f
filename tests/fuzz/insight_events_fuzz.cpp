// Any bytes are a file of events or of lineage as the pages of trainings read it, curves and records included. Check
// sums keep most inputs from the messages: so the bytes are also one record of such a file.
// Source: core/insight/store/landscape.cpp
#include "core/base/error.h"
#include "core/data/files/frames.h"
#include "core/insight/store/contents.h"
#include "core/insight/store/event_file.h"
#include "core/insight/store/landscape.h"
#include "core/insight/store/lineage.h"
#include "core/io/crc32c.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace lunaria;

std::string framed(std::string_view content) {
    std::string text;
    const auto put = [&](auto value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(static_cast<uint64_t>(content.size()));
    put(masked_crc32c(std::string_view(text).substr(0, 8)));
    text += content;
    put(masked_crc32c(content));
    return text;
}

template <class F>
void tried(const F& f) {
    try {
        f();
    } catch (const Error&) {
    } catch (const std::bad_variant_access&) {
    }
}

void read_all(const std::string& bytes) {
    const MemoryFile file(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    insight::EventFile events("fuzz", file.path());
    while (events.refresh(1 << 12) && events.more()) continue;
    for (const auto& [tag, series] : events.scalars())
        for (size_t s = 0; s < series.stretches().size(); ++s)
            tried([&] {
                insight::RecordSource source(file.path());
                std::vector<insight::Point> points;
                insight::read_points(source, tag, series, s, points);
            });
    for (size_t k = 1; k < insight::kKinds; ++k) {
        const auto kind = static_cast<insight::Kind>(k);
        for (const auto& [tag, items] : events.items(kind)) {
            insight::RecordReader reader(kind, tag);
            for (const insight::Item& item : items) {
                tried([&] { (void)reader.read({&events, item}); });
                tried([&] { (void)insight::read_landscape(reader.bytes({&events, item})); });
            }
        }
    }
    insight::Lineage lineage;
    tried([&] { insight::add_lineage(file.path(), lineage); });
    for (const std::string& setting : events.hparams()) insight::add_hparams(setting, lineage);
    (void)insight::dumped(insight::hyper_of(lineage));
    (void)insight::dumped(insight::metrics_of(lineage));
    (void)insight::dumped(insight::data_of(lineage));
    (void)insight::dumped(insight::dataset_graph_of(lineage));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    read_all(bytes);
    read_all(framed(bytes));
    return 0;
}
