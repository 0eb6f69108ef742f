// Memory that the ranks of one host share: a seat for each rank in each group, where it says how far it has come and
// lays what the others read, and a channel for each pair of ranks. It holds no pointers, and zeros are its beginning.
//
// Ranks go through a request in steps. In each step a rank fills its box, arrives, waits until all members of the group
// have arrived, and reads their boxes. There are two boxes, used in turn: a rank that fills a box again has waited for
// all members in the step between, hence all have read what was in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/parallel/own_record.h"

namespace lunaria::parallel {

inline constexpr size_t kTiny = 16, kSmall = 2048, kLarge = size_t{1} << 20;

struct Seat {
    alignas(64) std::atomic<uint32_t> step;  // the last step at which the rank has arrived
    std::atomic<uint32_t> waiters;           // ranks that sleep until it changes
    std::atomic<uint64_t> fingerprint[2];    // of the request, set in its first step
    unsigned char tiny[2][kTiny];
    alignas(64) Mark marks[2];
    alignas(64) unsigned char small[2][kSmall];
    alignas(4096) unsigned char large[2][kLarge];
};

struct Channel {
    static constexpr size_t kSlots = 4, kSlotSize = size_t{1} << 16;
    struct Slot {
        Mark mark;  // of the message to which the data belong
        uint64_t bytes, message_bytes;
        alignas(64) unsigned char data[kSlotSize];
    };
    alignas(64) std::atomic<uint32_t> filled;   // slots filled so far
    alignas(64) std::atomic<uint32_t> emptied;  // slots emptied so far
    alignas(4096) Slot slots[kSlots];
};

// What a rank says of itself outside of groups.
struct Bell {
    alignas(64) std::atomic<uint32_t> news;  // changes when one of its channels may move on
    std::atomic<uint32_t> sleepers;
    // What its program waits for, published while it sleeps: 1 + the rank that has to do something (0: it does not
    // wait), and what: its step in a seat (by the address from the beginning of the arena), or its send or recv.
    std::atomic<int32_t> waits_for;
    std::atomic<uint32_t> step;
    std::atomic<uint64_t> seat;   // 0: a transfer
    std::atomic<bool> sends;      // of a transfer: it waits for room
    std::atomic<uint32_t> waits;  // how often it has begun to wait
};

class Arena {
  public:
    // For threads of this process. Pages that nothing writes to take no memory.
    explicit Arena(int ranks);
    // For processes of one host, each of which makes its own object: rank 0 makes the memory, without a name, and the
    // others find it by its record, for which they wait.
    Arena(const std::string& job, int rank, int ranks);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    int ranks() const { return ranks_; }
    // The record of a rank; an empty one as long as the rank has not come.
    RankLog& log(int rank) const;
    // This rank has ended. After the last one, the files of records go, unless a rank failed.
    void leave(bool has_failed) const;
    Bell& bell(int rank) const;
    Channel& channel(int from, int to) const;
    // The seats of the group with that key, one after the other; made by the member that asks first.
    Seat* seats(uint64_t key, int members) const;
    uint64_t address_of(const Seat& seat) const;
    // A number that changes whenever what the rank waits for moves on; 0 if it does not wait, or has what it waits for.
    uint64_t waits_in_vain(int rank) const;

  private:
    static constexpr size_t kGroups = 1024;
    struct Head;
    struct Offsets;
    Offsets offsets() const;
    Head& head() const;
    void map(int file);
    void find(const std::string& job);
    void map_from(const RankLog& first);
    void wait_for_others() const;

    int ranks_;
    size_t size_;
    unsigned char* memory_ = nullptr;
    std::string job_;  // empty: the ranks are threads
    int file_ = -1;    // of rank 0
    uint64_t key_ = 0;
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<RecordFile>> records_;  // of processes, as far as they have come
};

// Sleeps until the word is no longer `value` or something wakes it, for `milliseconds` at most.
void sleep_on(const std::atomic<uint32_t>& word, uint32_t value, int milliseconds);
void wake(const std::atomic<uint32_t>& word);
// Changes the word and wakes those that sleep on it.
void ring(Bell& bell);

}  // namespace lunaria::parallel
