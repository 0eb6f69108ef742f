// Memory for large blocks: one reserved range of addresses, in which space given back in one size serves another. Free
// neighbours are merged, and keep their pages, so that the system need not clear and map new ones. Not safe from
// several threads: the owner locks.
//
// Memory is given back when there is none left, too, and must not fail then: the entries of ranges are made when a
// range has no neighbour, and only moved otherwise. A range for which there is no entry gives its pages to the system,
// and its addresses, of which there are many, are not used again.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace lunaria {

class PageStore {
  public:
    static constexpr size_t kPage = 4096;

    PageStore();
    ~PageStore();
    PageStore(const PageStore&) = delete;

    // False: the system refused the range, and take() always fails.
    bool is_there() const { return base_; }
    bool owns(const void* block) const {
        return base_ && static_cast<const char*>(block) >= base_ && static_cast<const char*>(block) < base_ + reserved_;
    }
    // A block of a multiple of kPage bytes, with pages that were in use before; nullptr: no free range is large enough.
    void* take(size_t size);
    // The same with fresh pages; nullptr where the addresses are used up.
    void* take_fresh(size_t size);
    void give_back(void* block, size_t size);  // does not throw
    // Bytes of free ranges that have pages.
    size_t kept() const { return kept_; }
    // Gives pages to the system until at most `bytes` are kept.
    void drop(size_t bytes);

  private:
    // Free ranges of one kind by address and by size.
    struct Ranges {
        std::map<char*, size_t> by_address;
        std::set<std::pair<size_t, char*>> by_size;

        // False, and no range is added, where there is no memory for its entries.
        bool add(char* at, size_t size);
        void remove(std::map<char*, size_t>::iterator range);
        // Gives a range other bounds, between those of its neighbours.
        void change(std::map<char*, size_t>::iterator range, char* at, size_t size);
        // The first part of the smallest range that is large enough; nullptr without one.
        char* take(size_t size);
    };
    char* base_ = nullptr;
    size_t reserved_ = 0, used_ = 0, kept_ = 0;
    Ranges warm_, cold_;
};

}  // namespace lunaria
