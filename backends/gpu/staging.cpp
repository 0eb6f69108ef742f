#include "backends/gpu/staging.h"

#include <algorithm>
#include <cstring>

#include "backends/gpu/streams.h"

namespace lunaria::gpu {

namespace {
constexpr size_t kLine = 64;
}  // namespace

Result Staging::prepare(std::span<Part> parts) {
    if (parts.back().done) return kSuccess;
    for (Part& part : parts) {
        if (!part.memory) {
            void* memory = nullptr;
            if (Result r = driver_.host_allocate(&memory, kPart, 0)) return r;
            part.memory = static_cast<char*>(memory);
        }
        if (part.done) continue;
        if (Result r = driver_.event_create(&part.done, kNoTiming)) return r;
    }
    return kSuccess;
}

Result Staging::next_upload() {
    if (Result r = driver_.event_record(up_[now_].done, stream_)) return r;
    up_[now_].travels = true;
    now_ = (now_ + 1) % kUploads;
    used_ = 0;
    if (!up_[now_].travels) return kSuccess;
    up_[now_].travels = false;
    return driver_.event_synchronize(up_[now_].done);
}

Result Staging::upload(Address to, const char* from, size_t bytes) {
    if (Result r = prepare(up_)) return r;
    while (bytes > 0) {
        if (used_ == kPart)
            if (Result r = next_upload()) return r;
        const size_t count = std::min(bytes, kPart - used_);
        char* here = up_[now_].memory + used_;
        std::memcpy(here, from, count);
        if (Result r = driver_.copy_to_device(to, here, count, stream_)) return r;
        used_ = std::min(kPart, (used_ + count + kLine - 1) / kLine * kLine);
        to += count, from += count, bytes -= count;
    }
    return kSuccess;
}

Result Staging::download(char* to, Address from, size_t bytes) {
    if (Result r = prepare(down_)) return r;
    const size_t parts = (bytes + kPart - 1) / kPart;
    auto size_of_part = [&](size_t i) { return std::min(kPart, bytes - i * kPart); };
    // While the host copies one part, the next one is on its way.
    for (size_t i = 0; i <= parts; ++i) {
        if (i < parts) {
            Part& part = down_[i % kDownloads];
            if (Result r = driver_.copy_to_host(part.memory, from + i * kPart, size_of_part(i), stream_)) return r;
            if (Result r = driver_.event_record(part.done, stream_)) return r;
        }
        if (i > 0) {
            const Part& part = down_[(i - 1) % kDownloads];
            if (Result r = driver_.event_synchronize(part.done)) return r;
            std::memcpy(to + (i - 1) * kPart, part.memory, size_of_part(i - 1));
        }
    }
    return kSuccess;
}

void Staging::lose(StreamHandle* stream) {
    stream_ = stream;
    for (Part& part : up_) part = {};
    for (Part& part : down_) part = {};
    now_ = used_ = 0;
}

}  // namespace lunaria::gpu
