// The tables that a recorded call makes. Until a table is given away only the call has it, so that reading and writing
// it is no event; then one step of the record makes the table with its whole content.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria::trace {

class Recording;

class OwnTables {
  public:
    struct Own {
        Value table;  // kept, so that no other table gets its address
        size_t array = 0, fields = 0;
        int32_t number = 0;  // number among the run's tables
        struct Change {
            Value key;
            bool insert;
        };
        std::vector<Change> changes;
        // For a table that the runner has made already and that the outside has: its content while the run is repeated
        // up to the place where it was made.
        Value content;
    };

    explicit OwnTables(Recording& recording) : r_(recording) {}

    // Null: the table is not one of these.
    Own* find(const Value& table);
    Value make(size_t array, size_t fields);
    // Takes over a table that the library has made for the call.
    Value adopt(Value table);
    // Writes a field.
    void set(Own& own, const Value& key, const Value& value);
    // Hands the table to the outside; returns its slot.
    int32_t give_away(Own& own);
    // Whether it is being handed over.
    bool goes_away(const Value& table) const;
    // From now on other code may look into them: they must not hold symbolic numbers.
    void settle();
    // Notes that the runner made the table of that number.
    void replay(int32_t number, const Value& table) { replayed_[number] = table; }
    // The number of tables made so far.
    int32_t& count() { return count_; }

  private:
    Value replayed(int32_t number, Value& content);
    Own& add(const Value& table, int32_t number, const Value& content);

    Recording& r_;
    int32_t count_ = 0;
    int depth_ = 0;  // nesting depth of tables that are being given away
    std::unordered_map<const void*, Own> own_;
    std::unordered_set<const void*> away_;
    std::unordered_map<int32_t, Value> replayed_;  // by number
};

}  // namespace lunaria::trace
