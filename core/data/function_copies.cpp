// Functions of the host language whose copies run on the threads that make rows.
#include "core/data/following.h"
#include "core/data/functions.h"
#include "core/data/layout.h"

namespace lunaria::data {

namespace {

struct Plan {
    std::string where;
    uint64_t function;
    std::vector<size_t> inputs;
    Names input_names;
    Layout layout;
    size_t results;
    uint64_t seed;
    bool numbered;

    void apply(Row& whole, Row& row, const Epoch& epoch, int64_t number) const {
        Row arguments, made;
        for (size_t at : inputs) arguments.push_back(whole[at]);
        if (numbered) {
            arguments.emplace_back(number);
            arguments.emplace_back(static_cast<int64_t>(epoch.number));
        }
        epoch.host->call_anywhere(function, arguments, results, made,
                                  {where, &input_names, seed, epoch.number, number});
        row.clear();
        layout.place(whole, made, row);
    }
};

class Copies final : public MakingNode {
  public:
    Copies(const NodePtr& child, Plan plan, std::optional<int> workers)
        : MakingNode(plan.layout.names, child, workers), plan_(std::move(plan)) {}
    std::string title() const override { return plan_.where + " in workers"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<MadeCursor<Plan>>(child().open(epoch), plan_, epoch);
    }
    void prepare(Host& host) const override {
        Node::prepare(host);
        host.prepare(plan_.function, plan_.where);
    }

  private:
    Plan plan_;
};

}  // namespace

NodePtr map_anywhere(NodePtr child, std::string where, uint64_t function, std::vector<size_t> inputs, Names outputs,
                     uint64_t seed, bool numbered, std::optional<int> workers) {
    seed += kSeedStep * child->functions();
    Layout layout(child->columns(), inputs, outputs);
    Names names = chosen(child->columns(), inputs);
    Plan plan{std::move(where), function, std::move(inputs), std::move(names), std::move(layout),
              outputs.size(),   seed,     numbered};
    return std::make_shared<Copies>(child, std::move(plan), workers);
}

}  // namespace lunaria::data
