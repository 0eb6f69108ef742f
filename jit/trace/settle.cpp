// Analysis of a tree of traces as a whole: the last use of each slot, the values that go out, regions and groups of
// guards. Where nothing has changed below a block, its earlier results still hold, so that a further branch costs as
// much as its path, not as the tree.
#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "jit/language.h"
#include "jit/trace/region.h"
#include "jit/trace/trace.h"

namespace lunaria::trace {

namespace {

using Slots = std::unordered_set<int32_t>;

bool hands_out(Step::Kind kind) {
    return kind == Step::Kind::finish || kind == Step::Kind::make || kind == Step::Kind::call ||
           kind == Step::Kind::raw_set || kind == Step::Kind::set_upvalue;
}

// Whether the step may have another result than the recorded one, or an error. Arithmetic fails only on texts.
bool may_surprise(const Step& step, const Slots& texts) {
    switch (step.kind) {
        case Step::Kind::raw_set:
        case Step::Kind::set_upvalue:
        case Step::Kind::finish:
        case Step::Kind::scalar:
            return false;
        case Step::Kind::number:
            if (!lua::facts(step.op()).total) return true;
            return std::ranges::any_of(step.args(), [&](const Value& v) {
                return v.is_node() ? texts.contains(v.node()->slot) : !v.is_number();
            });
        default:
            return true;
    }
}

void make_stale(Block& block) {
    block.settled.stale = true;
    for (auto& next : block.next) make_stale(*next);
}

// Finds the blocks below which something has changed; returns whether this is one.
bool find_stale(Tree& tree, Block& block) {
    // A block with a single successor is joined with it: a region may extend across both.
    while (block.join_only_way()) {
    }
    if (block.changed) {
        block.settled.loops = false;
        for (const Step& step : block.steps) {
            block.settled.loops |= step.kind == Step::Kind::loop;
            for (const Expected& e : step.expected)
                if (e.what == Expected::What::number && e.constant.kind() == Value::Kind::string)
                    tree.texts.insert(e.slot);
        }
    }
    bool stale = block.changed;
    for (auto& next : block.next) stale |= find_stale(tree, *next);
    block.settled.stale = stale;
    // A jump back to a loop needs what any way through the loop needs.
    if (stale && block.settled.loops) make_stale(block);
    return stale;
}

bool leads_to_loop(const Block& block) {
    return block.settled.loops ||
           std::ranges::any_of(block.next, [](const auto& next) { return leads_to_loop(*next); });
}

// For each step that jumps back: the slots from before the loop that the loop and everything after it need.
class Kept {
  public:
    explicit Kept(const Block& root) {
        visit(root);
        // A loop that is left for the next iteration of an outer one needs what that iteration needs.
        for (bool grows = true; grows;) {
            grows = false;
            for (const auto& [inner, outer] : within_) {
                const size_t before = inner->size();
                inner->insert(outer->begin(), outer->end());
                grows |= inner->size() > before;
            }
        }
    }
    const Slots& at(const Step& back) const { return *back_.at(&back); }

  private:
    struct Loop {
        const Step* step;
        Slots* used;
    };
    void visit(const Block& block) {
        if (!block.settled.stale || (open_.empty() && !leads_to_loop(block))) return;
        const size_t open = open_.size();
        for (const Step& step : block.steps) {
            const auto use = [&](int32_t slot) {
                for (const Loop& loop : open_)
                    if (slot < loop.step->expected[0].slot) loop.used->insert(slot);
            };
            for_each_slot(step, use);
            for (const Expected& e : step.expected)
                if (e.what == Expected::What::same) use(e.slot);
            std::ranges::for_each(step.live, use);
            if (step.kind == Step::Kind::loop) open_.push_back({&step, &used_.emplace_back()});
            if (!goes_back(step)) continue;
            const auto loop = std::find_if(open_.rbegin(), open_.rend(),
                                           [&](const Loop& one) { return is_loop_of(*one.step, step); });
            back_[&step] = loop->used;
            for (auto inner = loop.base(); inner != open_.end(); ++inner) within_.emplace_back(inner->used, loop->used);
        }
        for (const auto& next : block.next) visit(*next);
        open_.resize(open);
    }

    std::deque<Slots> used_;
    std::vector<Loop> open_;
    std::unordered_map<const Step*, const Slots*> back_;
    std::vector<std::pair<Slots*, const Slots*>> within_;
};

// Slots that go out, and the number of times.
using Handed = std::unordered_map<int32_t, int>;

void count_handed(const Step& step, Handed& handed) {
    if (hands_out(step.kind)) for_each_slot(step, [&](int32_t s) { ++handed[s]; });
    // A tensor that is a key is found by its handle.
    if (step.kind == Step::Kind::read) for_each_slot(step.args()[1], [&](int32_t s) { ++handed[s]; });
}

class Settling {
  public:
    explicit Settling(Tree& tree) : texts_(tree.texts), kept_(tree.root) {
        Handed handed;
        settle(tree.root, handed);
        SlotTypes types;
        finish(tree.root, {}, types);
    }

  private:
    // Returns the slots needed at the start of the block, and adds to those that go out.
    Slots settle(Block& block, Handed& handed) {
        Block::Settled& known = block.settled;
        if (!known.stale) {
            for (const auto& [slot, times] : known.handed) handed[slot] += times;
            return {known.needed.begin(), known.needed.end()};
        }
        Slots needed;
        Handed out;
        known.branches = block.next.empty();
        known.steps = block.steps.size();
        known.slots = 0;
        for (auto& next : block.next) {
            needed.merge(settle(*next, out));
            known.branches += next->settled.branches;
            known.steps += next->settled.steps;
            known.slots = std::max(known.slots, next->settled.slots);
        }
        for (auto& next : block.next) {
            next->dead.clear();
            for (const int32_t slot : needed)
                if (!std::ranges::binary_search(next->settled.needed, slot)) next->dead.push_back(slot);
        }
        add_end(block, needed);
        for (size_t i = block.steps.size(); i-- > 0;) settle(block.steps[i], known, needed, out);
        known.needed.assign(needed.begin(), needed.end());
        std::ranges::sort(known.needed);
        known.handed.assign(out.begin(), out.end());
        for (const auto& [slot, times] : out) handed[slot] += times;
        return needed;
    }

    // After the last step of a recording that ended in an error or a limit, another recording takes over the call.
    static void add_end(const Block& block, Slots& needed) {
        if (!block.next.empty() || block.steps.empty()) return;
        const Step& last = block.steps.back();
        if (!(last.late || last.effect) || last.kind == Step::Kind::finish) return;
        needed.insert(last.live.begin(), last.live.end());
        for (const Expected& e : last.expected)
            if (e.slot >= 0) needed.insert(e.slot);
    }

    void settle(Step& step, Block::Settled& known, Slots& needed, Handed& handed) const {
        step.drops.clear();
        if (goes_back(step)) needed = kept_.at(step);
        for (Expected& e : step.expected) {
            if (e.what == Expected::What::same || e.slot < 0) continue;
            e.handed = handed.contains(e.slot);
            known.slots = std::max(known.slots, e.slot + 1);
            if (!needed.erase(e.slot)) step.drops.push_back(e.slot);
        }
        auto use = [&](int32_t slot) {
            if (needed.insert(slot).second) step.drops.push_back(slot);
        };
        for_each_slot(step, use);
        count_handed(step, handed);
        for (const Expected& e : step.expected)
            if (e.what == Expected::What::same) use(e.slot);
        // A slot that is needed if this very step fails is dropped after it at the earliest.
        if (may_surprise(step, texts_))
            for (int32_t slot : step.live) use(slot);
        if (step.kind == Step::Kind::finish) step.drops.clear();
    }

    // `above`: the slots that go out before the block.
    void finish(Block& block, const Handed& above, SlotTypes& types) {
        if (!block.settled.stale) return;
        Handed handed = above;
        for (const auto& [slot, times] : block.settled.handed) handed[slot] += times;
        for (Step& step : block.steps)
            if (hands_out(step.kind)) {
                step.again.clear();
                for_each_slot(step, [&](int32_t slot) {
                    if (handed.at(slot) > 1) step.again.push_back(slot);
                });
            }
        block.write_ways();
        find_regions(block, types);
        find_guard_groups(block);
        handed = above;
        for (const Step& step : block.steps) count_handed(step, handed);
        for (auto& next : block.next) finish(*next, handed, types);
        block.settled.stale = block.changed = false;
    }

    const Slots& texts_;
    const Kept kept_;
};

}  // namespace

void settle(Tree& tree) {
    tree.dirty = false;
    ++tree.settled;
    find_stale(tree, tree.root);
    const Settling settling(tree);
    tree.branches = tree.root.settled.branches;
    tree.steps = tree.root.settled.steps;
    tree.slots = tree.root.settled.slots;
}

}  // namespace lunaria::trace
