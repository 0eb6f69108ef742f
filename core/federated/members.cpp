#include "core/federated/members.h"

#include <algorithm>
#include <cassert>

namespace lunaria::federated {

namespace {

// A table of open addresses with 24 bytes for each device, so that ten million of them fit in half a gigabyte.
// Forgetting only moves a limit: marks before it count as absent, their places are used again, and those that are left
// over go when the table is next rebuilt. So a new iteration costs nothing, and memory stays that of the largest one.
class Table final : public Members {
  public:
    Table() : slots_(kLeast) {}

    std::optional<Mark> find(DeviceId device) const override {
        for (size_t at = home(device);; at = after(at)) {
            const Slot& slot = slots_[at];
            if (is_empty(slot)) return std::nullopt;
            if (slot.device == device) return is_live(slot) ? std::optional(slot.mark) : std::nullopt;
        }
    }

    void put(DeviceId device, const Mark& mark) override {
        assert(mark.iteration >= 1);
        size_t reusable = slots_.size();
        for (size_t at = home(device);; at = after(at)) {
            Slot& slot = slots_[at];
            if (!is_empty(slot) && slot.device == device) {
                slot.mark = mark;
                return;
            }
            if (!is_empty(slot)) {
                if (!is_live(slot) && reusable == slots_.size()) reusable = at;
                continue;
            }
            // A forgotten device's place may be taken: the search for that device ends at an empty place as before.
            if (reusable != slots_.size()) {
                slots_[reusable] = {device, mark};
                return;
            }
            if ((used_ + 1) * 4 > slots_.size() * 3) {
                rebuild();
                return put(device, mark);
            }
            slot = {device, mark};
            ++used_;
            return;
        }
    }

    void forget_before(int64_t iteration) override {
        // Marks that were forgotten are still in their places.
        first_ = std::max(first_, static_cast<uint32_t>(iteration));
    }

    int64_t size() const override {
        return std::ranges::count_if(slots_, [&](const Slot& s) { return is_live(s); });
    }

    std::vector<std::pair<DeviceId, Mark>> all() const override {
        std::vector<std::pair<DeviceId, Mark>> list;
        for (const Slot& slot : slots_)
            if (is_live(slot)) list.emplace_back(slot.device, slot.mark);
        std::ranges::sort(list, {}, &std::pair<DeviceId, Mark>::first);
        return list;
    }

  private:
    static constexpr size_t kLeast = 64;  // a power of two, as all sizes
    struct Slot {
        DeviceId device = 0;
        Mark mark;
    };
    static bool is_empty(const Slot& slot) { return slot.mark.iteration == 0; }
    bool is_live(const Slot& slot) const { return slot.mark.iteration >= first_ && !is_empty(slot); }
    size_t after(size_t at) const { return (at + 1) & (slots_.size() - 1); }
    // Ids may be consecutive numbers.
    size_t home(DeviceId device) const {
        uint64_t x = device + 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return (x ^ (x >> 31)) & (slots_.size() - 1);
    }
    // With room for as many devices again as there are live ones.
    void rebuild() {
        const auto live = static_cast<size_t>(size());
        size_t wanted = kLeast;
        while (wanted * 3 < (live + 1) * 5) wanted *= 2;
        std::vector<Slot> old(wanted);
        old.swap(slots_);
        used_ = live;
        for (const Slot& slot : old)
            if (is_live(slot)) {
                size_t at = home(slot.device);
                while (!is_empty(slots_[at])) at = after(at);
                slots_[at] = slot;
            }
    }

    std::vector<Slot> slots_;
    size_t used_ = 0;  // places that are not empty
    uint32_t first_ = 1;
};

}  // namespace

std::unique_ptr<Members> members_in_memory() { return std::make_unique<Table>(); }

}  // namespace lunaria::federated
