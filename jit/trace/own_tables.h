// The tables that a recorded call makes. Until one is given away only the call knows it, so that reading and writing it
// is no event; then one step of the record makes it with all that it holds.
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
        int32_t number = 0;  // which of the run's tables it is
        struct Change {
            Value key;
            bool insert;
        };
        std::vector<Change> changes;
        // Of a table that the runner made already and that the outside knows: its content, while the run is done again
        // up to where it was made.
        Value content;
    };

    explicit OwnTables(Recording& recording) : r_(recording) {}

    // Null: it is none of these.
    Own* find(const Value& table);
    Value make(size_t array, size_t fields);
    // A table that the library has made for the call.
    Value adopt(Value table);
    // Writes a field.
    void set(Own& own, const Value& key, const Value& value);
    // The table from then on is one of the outside; its slot.
    int32_t give_away(Own& own);
    // Whether that has begun.
    bool goes_away(const Value& table) const;
    // From now on other code may look into them: they have no symbolic numbers.
    void settle();
    // The runner made the table of that number.
    void replay(int32_t number, const Value& table) { replayed_[number] = table; }
    // How many were made.
    int32_t& count() { return count_; }

  private:
    Value replayed(int32_t number, Value& content);
    Own& add(const Value& table, int32_t number, const Value& content);

    Recording& r_;
    int32_t count_ = 0;
    int depth_ = 0;  // of tables that are being given away, one within the other
    std::unordered_map<const void*, Own> own_;
    std::unordered_set<const void*> away_;
    std::unordered_map<int32_t, Value> replayed_;  // by number
};

}  // namespace lunaria::trace
