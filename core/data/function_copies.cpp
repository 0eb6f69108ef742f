// Functions of the host language that run as copies on the threads that make rows.
#include <algorithm>

#include "core/base/error.h"
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

    bool by_stream = false;  // the child's rows are made on the host's thread
    const void* owner = nullptr;
    bool tolerant = false;

    Row arguments_of(const Row& whole, const Epoch& epoch, int64_t number) const {
        Row arguments;
        for (size_t at : inputs) arguments.push_back(whole[at]);
        if (numbered) {
            arguments.emplace_back(number);
            arguments.emplace_back(static_cast<int64_t>(epoch.number));
        }
        return arguments;
    }
    Place place_of(const Epoch& epoch, int64_t number) const {
        return {where, &input_names, seed, epoch.number, number};
    }
    void apply(Row& whole, Row& row, const Epoch& epoch, int64_t number) const {
        Row made;
        drawn(whole, epoch);
        epoch.host->call_anywhere(function, arguments_of(whole, epoch, number), results, made, place_of(epoch, number));
        row.clear();
        layout.place(whole, made, row);
    }
    void apply_together(std::span<Row> whole, std::span<Row> rows, const Epoch& epoch,
                        std::span<const int64_t> numbers) const {
        std::vector<Row> arguments, made(whole.size());
        drawn(whole.front(), epoch);
        for (size_t i = 0; i < whole.size(); ++i) arguments.push_back(arguments_of(whole[i], epoch, numbers[i]));
        epoch.host->call_together(function, arguments, results, made, place_of(epoch, 0), numbers);
        for (size_t i = 0; i < whole.size(); ++i) {
            rows[i].clear();
            layout.place(whole[i], made[i], rows[i]);
        }
    }
    void show_example(const Row& whole, const Epoch& epoch) const {
        if (!numbered && std::ranges::all_of(inputs, [&](size_t at) { return at < whole.size(); }))
            epoch.host->show_example(function, owner, arguments_of(whole, epoch, 0));
    }
    // Shows the host a row that its thread has drawn or made, where an example is wanted.
    void drawn(const Row& row, const Epoch& epoch) const {
        if (by_stream && !row.empty() && epoch.host->wants_example(function, owner)) show_example(row, epoch);
    }
};

class Copies final : public MakingNode {
  public:
    Copies(const NodePtr& child, Plan plan, std::optional<int> workers)
        : MakingNode(plan.layout.names, child, workers), plan_(std::move(plan)) {
        plan_.by_stream = !child->is_native();
        plan_.owner = this;
    }
    std::string title() const override { return plan_.where + " in workers"; }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<MadeCursor<Plan>>(child().open(epoch), plan_, epoch);
    }
    void prepare(Host& host) const override {
        Node::prepare(host);
        host.prepare(plan_.function, plan_.where);
        if (plan_.by_stream || !host.wants_example(plan_.function, this)) return;
        Epoch epoch;
        epoch.host = &host;
        try {
            Row row;
            if (child().open(epoch)->next(row)) plan_.show_example(row, epoch);
        } catch (const Error& e) {
            // An error of the row is reported when the row's turn comes, or never.
            if (e.kind() == ErrorKind::interrupt) throw;
        }
    }

  private:
    Plan plan_;
};

}  // namespace

NodePtr map_anywhere(NodePtr child, std::string where, uint64_t function, std::vector<size_t> inputs, Names outputs,
                     uint64_t seed, bool numbered, std::optional<int> workers, bool tolerant) {
    seed += kSeedStep * child->functions();
    Layout layout(child->columns(), inputs, outputs);
    Names names = chosen(child->columns(), inputs);
    Plan plan{std::move(where), function, std::move(inputs), std::move(names), std::move(layout),
              outputs.size(),   seed,     numbered};
    plan.tolerant = tolerant;
    return std::make_shared<Copies>(child, std::move(plan), workers);
}

}  // namespace lunaria::data
