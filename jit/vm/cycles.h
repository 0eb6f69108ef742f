// Objects that only refer to each other. Values are counted by reference, which never frees a circle, and every circle
// of the machine's objects goes through a variable that closures share, a LocalCell: two local functions that call each
// other, for instance. (Closures and lists only refer to what was there before them.) So the cells that are alive are
// where the search begins.
//
// The method is that of counting once more (Christopher 1984; Bacon and Rajan 2001): an object that is referred to more
// often than from the objects looked at is in use from outside, and so is all that it leads to; the others are garbage.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "jit/vm/object.h"

namespace lunaria::vm {

// Calls f with every value that the object owns.
void for_each_owned(const Object& object, const std::function<void(const Value&)>& f);

// The objects that some objects lead to, and which of them are in use from elsewhere.
class Island {
  public:
    // Takes in an object and all that it leads to. `references`: how many of those to it are not to count, because
    // whoever asks holds them. False: more than `limit` objects, nothing is known.
    bool add(Object& object, int32_t references, size_t limit = ~size_t{0});
    // What nothing outside refers to, in the order in which it was found.
    std::vector<Object*> isolated() const;

  private:
    std::unordered_map<Object*, int32_t> counted_;
    std::vector<Object*> order_;
};

class CellList {
  public:
    ~CellList();
    void add(LocalCell& cell);
    void remove(LocalCell& cell);
    size_t size() const { return size_; }
    std::vector<LocalCell*> cells() const;

  private:
    LocalCell* first_ = nullptr;
    size_t size_ = 0;
};

// Of this thread: frees circles of objects among the cells that were made since the last time and, when there are many
// times as many of them as the last time, among the older ones. Quick when all new cells are gone.
void collect_cycles();
// Among all.
void collect_all_cycles();
// Called by whoever makes many cells.
bool many_new_cells();

}  // namespace lunaria::vm
