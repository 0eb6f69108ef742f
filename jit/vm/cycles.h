// Objects that only refer to each other. Values are counted by reference, which never frees a circle, and every circle
// of the machine's objects goes through a variable that closures share, a LocalCell (two local functions that call each
// other, for instance), or through a table of a plain host. (Closures and lists only refer to what was there before
// them.) So the cells and tables that are alive are where the search begins.
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
    void add(Circular& cell);
    void remove(Circular& cell);
    size_t size() const { return size_; }
    std::vector<Circular*> cells() const;
    // Drops what the object owns, if it is on a list.
    static void empty(Object& object);

  private:
    Circular* first_ = nullptr;
    size_t size_ = 0;
};

// Of this thread: frees circles of objects among the cells (and tables) that were made since the last time and, when
// there are many times as many of them as the last time, among the older ones. Quick when all new cells are gone.
void collect_cycles();
// Searches among all cells.
void collect_all_cycles();
// Whether to search: called by code that makes many cells.
bool many_new_cells();

}  // namespace lunaria::vm
