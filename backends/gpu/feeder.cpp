#include "backends/gpu/feeder.h"

#include "backends/gpu/streams.h"

namespace lunaria::gpu {

void Feeder::lose(StreamHandle* work) {
    work_ = work;
    stream_ = nullptr;
    arrived_ = nullptr;
    marks_ = {};
    next_ = 0;
    marked_ = fed_ = 0;
    staging_.lose(nullptr);
}

Result Feeder::prepare() {
    if (stream_) return kSuccess;
    for (Mark& mark : marks_)
        if (Result r = driver_.event_create(&mark.event, kNoTiming)) return r;
    if (Result r = driver_.event_create(&arrived_, kNoTiming)) return r;
    if (Result r = driver_.stream_create(&stream_, kNoWaitForOthers)) return r;
    staging_.lose(stream_);
    return kSuccess;
}

Result Feeder::mark(uint64_t position) {
    Mark& mark = marks_[next_];
    next_ = (next_ + 1) % kMarks;
    mark.position = marked_ = position;
    return driver_.event_record(mark.event, work_);
}

Result Feeder::passed(uint64_t position) {
    if (!stream_ || position < marked_ + kEvery || position > fed_ + kLong) return kSuccess;
    return mark(position);
}

Result Feeder::upload(Address to, const char* from, size_t bytes, uint64_t free_since, uint64_t position) {
    if (Result r = prepare()) return r;
    fed_ = position;
    if (free_since > 0) {
        if (marked_ < free_since)
            if (Result r = mark(position)) return r;
        // The first mark after the last use.
        const Mark* found = nullptr;
        for (const Mark& mark : marks_)
            if (mark.position >= free_since && (!found || mark.position < found->position)) found = &mark;
        if (Result r = driver_.stream_wait(stream_, found->event, 0)) return r;
    }
    if (Result r = staging_.upload(to, from, bytes)) return r;
    if (Result r = driver_.event_record(arrived_, stream_)) return r;
    return driver_.stream_wait(work_, arrived_, 0);
}

}  // namespace lunaria::gpu
