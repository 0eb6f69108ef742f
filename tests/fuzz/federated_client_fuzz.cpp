// A client of a federated job whose server answers anything: replies as they come, and such whose checksum is right.
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/federated/client/job.h"

using namespace lunaria;
using namespace lunaria::federated;

namespace {

// Takes replies from the input: two bytes of length, one of the code, the content.
struct AnyServer final : client::Connection {
    std::string_view rest;

    std::string_view take(size_t bytes) {
        const std::string_view taken = rest.substr(0, bytes);
        rest.remove_prefix(taken.size());
        return taken;
    }
    client::Reply post(std::string_view, std::string_view, std::string_view) override {
        client::Reply reply;
        reply.status = 200;
        const std::string_view head = take(3);
        if (head.size() < 3) {
            reply.fault = client::Fault::certificate_expired;
            return reply;
        }
        const size_t length =
            static_cast<unsigned char>(head[0]) | static_cast<size_t>(static_cast<unsigned char>(head[1])) << 8;
        const std::string_view content = take(length);
        const int kind = static_cast<unsigned char>(head[2]);
        if (kind >= 250) {
            reply.body = content;
            return reply;
        }
        constexpr messages::Code kCodes[] = {messages::Code::succeed, messages::Code::succeed,
                                             messages::Code::not_ready, messages::Code::out_of_time,
                                             messages::Code::system_error};
        messages::Reply written;
        written.code = kCodes[kind % 5];
        written.iteration = kind / 5;
        written.timestamp = 1000;
        written.next_request_time = 1001;
        written.content = content;
        reply.body = messages::written(written);
        return reply;
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    auto server = std::make_unique<AnyServer>();
    server->rest = {reinterpret_cast<const char*>(data), size};
    client::JobOptions options;
    options.job = "job";
    options.client = "a";
    options.patience_ms = 100;
    int64_t now = 0;
    client::Job job(options, std::move(server), [&] { return now; });
    try {
        for (int turn = 0; turn < 100; ++turn) {
            const client::Event event = job.advance();
            now += std::max<int64_t>(event.wait_ms, 1);
            if (event.kind == client::Event::Kind::ended) break;
            if (event.kind != client::Event::Kind::train) continue;
            client::LocalUpdate update;
            update.samples = 1;
            update.features = job.model().features;
            job.give(std::move(update));
        }
    } catch (const Error&) {
    }
    return 0;
}
