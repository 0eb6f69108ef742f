// Ranks under watch by one that waits for their messages. Those of this host are known by their records, as over shared
// memory; of others is known what they told when they came, and what they asked for last.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/own_record.h"
#include "core/parallel/partner.h"
#include "core/parallel/transport.h"

namespace lunaria::parallel {

// What a rank asks for, with the names that its mark numbers.
struct Witness {
    Mark mark;
    int32_t rank = -1;  // -1: nothing is known
    char chunk[RankLog::kNameSize] = {}, parameter[RankLog::kNameSize] = {};

    static Witness of(const RankLog& log, const Mark& mark, int rank);
    std::string text() const;  // "all_reduce #41 (float32, 1000 elements) of fc1.weight, train.lua:57"
};

// A rank that waits: since when, and since when what a lost rank has sent before may still have been on its way.
struct Waiting {
    uint64_t since = nanoseconds_now();
    uint64_t last_look = 0, first_loss = 0;
};

class MessageWatch {
  public:
    // What a rank writes into its record that did not fail by itself.
    static constexpr std::string_view kEndedBySignal = "ended by signal 15 (Terminated)";

    MessageWatch(Transport& transport, std::string job);

    // All ranks tell each other their processes and hosts. Called once, before any request.
    void meet();
    // Whether two ranks run on the same host; known after meet().
    bool share_host(int a, int b) const;
    // Remembers what another rank has asked for.
    void heard(const Witness& witness);
    // Throws if nothing will come from the other rank any more, or nothing has come for too long. Callable often: looks
    // that cost something are made some times in a second.
    void look_after(int other, const Witness& own, Waiting& waiting);
    // A rank of this host whose process is gone without having said why, or that said why it failed: "rank 1 (process
    // 812) died in ..."; empty: there is none.
    std::string casualty();

  private:
    struct Origin {  // of a rank, as all others are told it
        int32_t pid = 0;
        char host[60] = {};
    };
    struct Peer {
        Origin origin;
        std::unique_ptr<RecordFile> record;  // if it runs on this host
        Partner partner;
        Witness last;
    };
    const RankLog* record_of(int rank);
    std::string description_of(int rank, const std::string& loss);

    Transport& transport_;
    const std::string job_;
    std::mutex mutex_;  // the program, its transfers and the thread that tells of casualties look at the same time
    std::vector<Peer> peers_;
    Impatience impatience_;
};

}  // namespace lunaria::parallel
