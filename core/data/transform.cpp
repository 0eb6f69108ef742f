#include "core/data/transform.h"

#include <cmath>

#include "core/base/error.h"
#include "core/data/following.h"
#include "core/data/layout.h"
#include "core/data/place_in_batch.h"

namespace lunaria::data {

double RowDraws::normal() {
    // Box and Muller. The first number is above 0, so that its logarithm is finite.
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(2 * 3.14159265358979323846 * unit());
}

namespace {

struct Plan {
    std::vector<TransformPtr> transforms;
    std::vector<size_t> inputs;
    Names input_names;
    Layout layout;
    uint64_t seed;
    bool tolerant = false;

    void apply(Row& whole, Row& row, const Epoch& epoch, int64_t number) const {
        Row values;
        for (size_t at : inputs) values.push_back(whole[at]);
        // The row no longer needs the tensors that are replaced: transforms may write into them.
        for (size_t at : inputs) whole[at] = Value();
        for (size_t i = 0; i < transforms.size(); ++i) {
            RowDraws draws(seed, epoch.number, number, i);
            try {
                std::optional<PlaceInBatch::Hidden> hidden;
                if (i + 1 < transforms.size()) hidden.emplace();
                transforms[i]->apply(values, draws);
            } catch (const Error& e) {
                if (e.kind() == ErrorKind::interrupt) throw;
                std::string names;
                for (const std::string& name : input_names) names += (names.empty() ? "'" : ", '") + name + "'";
                // The text about the row goes to the end of the message, after the hint.
                const std::string text = e.what() + std::string(e.where()).append(": ").size();
                throw Error(e.kind(), e.where(),
                            str(text, "\n  in map: ", input_names.size() == 1 ? "column " : "columns ", names, ", row ",
                                number, " of epoch ", epoch.number));
            }
        }
        row.clear();
        layout.place(whole, values, row);
    }
};

class TransformNode final : public MakingNode {
  public:
    TransformNode(const NodePtr& child, Plan plan, std::optional<int> workers)
        : MakingNode(plan.layout.names, child, workers), plan_(std::move(plan)) {}
    std::string title() const override {
        std::string text = "map";
        for (const TransformPtr& t : plan_.transforms) text += " " + t->name();
        return text;
    }
    std::unique_ptr<Cursor> make_cursor(const Epoch& epoch) const override {
        return std::make_unique<MadeCursor<Plan>>(child().open(epoch), plan_, epoch);
    }

  private:
    Plan plan_;
};

}  // namespace

NodePtr transform(NodePtr child, std::vector<TransformPtr> transforms, std::vector<size_t> inputs, Names outputs,
                  uint64_t seed, std::optional<int> workers, bool tolerant) {
    size_t values = inputs.size();
    for (const TransformPtr& t : transforms) values = t->results(values);
    if (values != outputs.size())
        throw argument_error("map", str("the operations make ", values, " values of ", inputs.size(), " columns, but ",
                                        outputs.size(), " columns are named"))
            .hint("output_columns names them");
    Layout layout(child->columns(), inputs, outputs);
    Names names = chosen(child->columns(), inputs);
    seed += kSeedStep * child->functions();
    return std::make_shared<TransformNode>(
        child, Plan{std::move(transforms), std::move(inputs), std::move(names), std::move(layout), seed, tolerant},
        workers);
}

}  // namespace lunaria::data
