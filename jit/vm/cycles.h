// Objects that only refer to each other. Values are counted by reference, which never frees a circle, and every circle
// of the machine's objects goes through a variable that closures share, a LocalCell: two local functions that call each
// other, for instance. (Closures and lists only refer to what was there before them.) So the search begins at the live
// cells.
//
// The method is that of counting once more (Christopher 1984; Bacon and Rajan 2001): an object with more references
// than those from the visited objects is in use from outside, and so is everything it leads to; the others are garbage.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "jit/vm/object.h"

namespace lunaria::vm {

// Calls f with every value that the object owns.
void for_each_owned(const Object& object, const std::function<void(const Value&)>& f);

// The objects reachable from some objects, and those of them that are in use from elsewhere.
class Island {
  public:
    // Adds an object and everything it leads to. `references`: the number of references to it that do not count,
    // because the caller holds them. False: more than `limit` objects, nothing is known.
    bool add(Object& object, int32_t references, size_t limit = ~size_t{0});
    // The objects without references from outside, in the order in which they were found.
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

// Frees circles of objects in this thread, among the cells that were made since the last search and, when there are
// many times as many cells as then, among the older ones. Quick when all new cells are gone.
void collect_cycles();
// Searches among all cells.
void collect_all_cycles();
// Whether to search: called by code that makes many cells.
bool many_new_cells();

}  // namespace lunaria::vm
