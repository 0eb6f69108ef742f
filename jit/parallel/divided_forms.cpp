#include "jit/parallel/divided_forms.h"

#include <algorithm>
#include <list>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/operator/infer.h"
#include "jit/graph/executable.h"
#include "jit/parallel/partition.h"

namespace lunaria::parallel {

namespace {

constexpr size_t kMost = 16;  // layouts and sizes for which a graph is kept in pieces

// The graph for inputs that lie in one way.
struct Form {
    std::vector<Placed> inputs;  // as they lie, without numbers of pieces
    std::vector<Value> numbers;
    Partition partition;
    std::unique_ptr<graph::Executable> executable;  // null: its operators run one by one
    std::string problem;
};

bool lie_alike(const Placed& a, const Placed& b) {
    return a.layout == b.layout && a.is_host == b.is_host && a.dtype == b.dtype && a.shape == b.shape;
}

Placed place_of(const Tensor& t) {
    Placed p{nullptr, !is_laid_out(t), t.dtype(), t.shape(), {}};
    if (!p.is_host) p.layout = layout_of(t);
    return p;
}

Tensor tensor_of(const Placed& value, std::span<const Tensor> pieces) {
    if (value.is_host) return pieces[value.pieces[0]];
    Laid laid{value.layout, value.dtype, value.shape, {}};
    for (size_t k : value.pieces) laid.pieces.push_back(pieces[k]);
    return tensor_of(std::move(laid));
}

class Forms final : public graph::Divided {
  public:
    bool run(const Call& call, std::span<Tensor> outputs, const std::function<void()>& last) override {
        // Where a movement is an error it is told before anything is computed.
        if (on_reshard() == OnReshard::error) return false;
        std::vector<Tensor> inputs(call.inputs.begin(), call.inputs.end());
        for (Tensor& t : inputs)
            if (is_laid_out(t) && !is_whole(t)) t = parallel::tensor_of(content(t));
        const Form& form = form_for(call, inputs);
        if (!form.executable) return false;
        std::vector<Tensor> pieces;
        for (size_t i = 0; i < inputs.size(); ++i) add_pieces(inputs[i], form.partition.inputs[i], pieces);
        std::vector<Tensor> results(form.executable->output_count());
        const PlaceScope host(nullptr);
        form.executable->run(pieces, results, [&] {
            pieces.clear();
            const PlaceScope mesh(&mesh_device());
            for (const Partition::Completed& c : form.partition.completed)
                if (call.inputs[c.input].same_body(inputs[c.input]))
                    replace_content(inputs[c.input], content(tensor_of(c.value, results)));
            inputs.clear();
            for (size_t k = 0; k < outputs.size(); ++k) outputs[k] = tensor_of(form.partition.outputs[k], results);
            for (Tensor& t : results) t = Tensor();
            last();
        });
        return true;
    }

    bool exchanges() const override { return !forms_.empty() && forms_.front().partition.moves && has_other_ranks(); }
    std::string type_text(int node) const override {
        if (!executable()) return {};
        const auto found = forms_.front().partition.types.find(node);
        return found == forms_.front().partition.types.end() ? "" : found->second;
    }
    const graph::Executable* executable() const override {
        return forms_.empty() ? nullptr : forms_.front().executable.get();
    }

  private:
    static void add_pieces(const Tensor& t, const Placed& placed, std::vector<Tensor>& pieces) {
        if (placed.is_host) return pieces.push_back(t);
        const Laid laid = content(t);
        for (size_t k : placed.pieces) pieces.push_back(laid.pieces[k]);
    }

    const Form& form_for(const Call& call, std::span<const Tensor> inputs) {
        std::vector<Placed> placed;
        for (const Tensor& t : inputs) placed.push_back(place_of(t));
        const auto found = std::ranges::find_if(forms_, [&](const Form& form) {
            return std::ranges::equal(form.numbers, call.numbers, same_value) &&
                   std::ranges::equal(form.inputs, placed, lie_alike);
        });
        if (found != forms_.end()) {
            forms_.splice(forms_.begin(), forms_, found);
            return forms_.front();
        }
        forms_.push_front({});
        if (forms_.size() > kMost) forms_.pop_back();
        Form& form = forms_.front();
        form.inputs = std::move(placed);
        form.numbers.assign(call.numbers.begin(), call.numbers.end());
        make(form, call);
        return form;
    }

    static void make(Form& form, const Call& call) {
        try {
            const std::unique_ptr<ir::Graph> whole = call.graph();
            if (!whole) {
                form.problem = "an operator does not fit into a graph";
                return;
            }
            form.partition = partition(*whole, form.inputs);
            const PlaceScope host(nullptr);
            form.executable = graph::compile(*form.partition.graph);
        } catch (const Error& e) {
            form.problem = e.what();
        }
        if (!form.executable && logs(LogTopic::fallbacks))
            log(LogTopic::fallbacks, str("a graph on laid-out tensors runs operator by operator: ", form.problem));
    }

    std::list<Form> forms_;  // the one that ran last first
};

}  // namespace

std::unique_ptr<graph::Divided> make_divided() { return std::make_unique<Forms>(); }

}  // namespace lunaria::parallel
