#include "core/data/transforms/step.h"

#include <cmath>

namespace lunaria::transforms {

namespace {

class Step final : public data::Transform {
  public:
    Step(const Entry& entry, Arguments arguments)
        : Transform(arguments.where), entry_(entry), arguments_(std::move(arguments)) {}
    size_t results(size_t inputs) const override {
        return entry_.results ? entry_.results(arguments_, inputs) : inputs;
    }
    void apply(Row& row, RowDraws& draws) const override { entry_.run(row, arguments_, draws); }
    std::string_view kind() const { return entry_.name; }
    const Arguments& arguments() const { return arguments_; }

  private:
    Entry entry_;
    Arguments arguments_;
};

}  // namespace

TransformPtr make(std::string_view name, Arguments arguments) {
    for (std::span<const Entry> table :
         {generic_entries(), value_entries(), layout_entries(), color_entries(), tone_entries(), warp_entries(),
          crop_entries(), file_entries(), batch_entries(), box_entries(), text_entries(), audio_entries()})
        for (const Entry& entry : table) {
            if (entry.name != name) continue;
            if (arguments.numbers.size() < entry.numbers || arguments.tensors.size() < entry.tensors)
                throw argument_error(arguments.where, "arguments are missing");
            for (double number : arguments.numbers)
                if (!std::isfinite(number)) throw argument_error(arguments.where, "a number is not finite");
            if (entry.prepare) entry.prepare(arguments);
            return std::make_shared<Step>(entry, std::move(arguments));
        }
    throw argument_error(arguments.where, str("there is no transform '", name, "'"));
}

std::vector<TransformPtr> joined(const std::vector<TransformPtr>& transforms) {
    std::vector<TransformPtr> list;
    const Step* before = nullptr;
    for (const TransformPtr& transform : transforms) {
        const auto* step = dynamic_cast<const Step*>(transform.get());
        if (before && step && before->kind() == "normalize" && step->kind() == "hwc2chw" && before->arguments().flag(0))
            list.back() = make("normalize_planes", before->arguments());
        else
            list.push_back(transform);
        before = step;
    }
    return list;
}

}  // namespace lunaria::transforms
