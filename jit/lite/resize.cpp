#include "jit/lite/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/lite/format/check.h"
#include "core/lite/format/sizes.h"

namespace lunaria::lite {

namespace {

using Numbers = std::vector<int64_t>;  // one at each point

std::string place_of(const Step& step) {
    return str("step ", step.kind, " (", step.label, step.source.empty() ? "" : ", ", step.source, ")");
}

[[noreturn]] void refuse(const std::string& why) { throw state_error("lite.convert", why); }

[[noreturn]] void refuse_constant(const Model& model, size_t v) {
    const auto reads = [v](const Step& step) {
        return std::ranges::any_of(step.operands, [v](const View& view) { return view.value == v; });
    };
    const auto reader = std::ranges::find_if(model.steps, reads);
    refuse(str(reader == model.steps.end() ? str("value ", v) : place_of(*reader),
               ": a constant depends on the sizes, such as positions or a mask"));
}

// Formulas for numbers that are known at some points. They are looked for among sums and products of dimensions and of
// sizes of values that are known already; all points have to agree, of which there are more than a formula has
// coefficients.
class Fitter {
  public:
    Fitter(Model& model, const std::vector<Numbers>& points) : model_(model), points_(points) {
        for (size_t d = 0; d < model.dimensions.size(); ++d) {
            Numbers values;
            for (const Numbers& point : points) values.push_back(point[d]);
            add({values, {{{Formula::Kind::dimension, static_cast<int64_t>(d)}}}});
        }
    }

    // The number with its formula; nothing where none fits.
    std::optional<Number> fit(const Numbers& values) {
        if (std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; })) return Number(values[0]);
        if (const auto found = known_.find(values); found != known_.end())
            return Number(values[0], index_of(atoms_[found->second].formula));
        std::optional<Formula> formula = linear(values, atoms_);
        if (!formula) formula = part(values);
        if (!formula) formula = product(values);
        if (!formula) formula = sum(values);
        if (!formula) return {};
        add({values, *formula});
        return Number(values[0], index_of(*formula));
    }

  private:
    struct Atom {
        Numbers values;
        Formula formula;
    };
    using Terms = std::vector<Formula::Term>;

    void add(Atom atom) {
        if (known_.emplace(atom.values, atoms_.size()).second) atoms_.push_back(std::move(atom));
    }
    // Those that products and sums are made of.
    std::span<const Atom> factors() const { return std::span(atoms_).first(std::min<size_t>(atoms_.size(), 40)); }
    // b * ((x + e) / q) + a: a convolution with a stride, or a pool, leaves a part of a size. Only where each remainder
    // of x is among the points, so that no other formula fits them too.
    std::optional<Formula> part(const Numbers& values) const {
        for (const Atom& atom : atoms_)
            for (int64_t q = 2; q <= 4; ++q) {
                uint32_t remainders = 0;
                for (const int64_t v : atom.values) remainders |= 1u << (v % q);
                if (remainders != (1u << q) - 1) continue;
                for (int64_t e = 0; e < q; ++e) {
                    Atom made{{}, atom.formula};
                    for (const int64_t v : atom.values) made.values.push_back((v + e) / q);
                    made.formula = scaled(atom.formula.terms, 1, e);
                    made.formula.terms.push_back({Formula::Kind::constant, q});
                    made.formula.terms.push_back({Formula::Kind::divide, 0});
                    if (const auto found = linear(values, std::span(&made, 1))) return found;
                }
            }
        return {};
    }

    uint32_t index_of(const Formula& formula) {
        const auto found = std::ranges::find(model_.formulas, formula);
        if (found == model_.formulas.end()) {
            model_.formulas.push_back(formula);
            return static_cast<uint32_t>(model_.formulas.size() - 1);
        }
        return static_cast<uint32_t>(found - model_.formulas.begin());
    }

    static Formula scaled(Terms terms, int64_t factor, int64_t offset) {
        if (factor != 1) {
            terms.push_back({Formula::Kind::constant, factor});
            terms.push_back({Formula::Kind::multiply, 0});
        }
        if (offset != 0) {
            terms.push_back({Formula::Kind::constant, offset});
            terms.push_back({Formula::Kind::add, 0});
        }
        return {std::move(terms)};
    }

    // b * x + a for an x that is known.
    static std::optional<Formula> linear(const Numbers& values, std::span<const Atom> atoms) {
        for (const Atom& atom : atoms) {
            const auto other = std::ranges::find_if(atom.values, [&](int64_t v) { return v != atom.values[0]; });
            if (other == atom.values.end()) continue;
            const auto p = static_cast<size_t>(other - atom.values.begin());
            const int64_t run = atom.values[p] - atom.values[0], rise = values[p] - values[0];
            if (rise % run != 0) continue;
            const int64_t b = rise / run, a = values[0] - b * atom.values[0];
            bool fits = true;
            for (size_t i = 0; i < values.size() && fits; ++i) fits = values[i] == b * atom.values[i] + a;
            if (fits) return scaled(atom.formula.terms, b, a);
        }
        return {};
    }

    // c * x * y, c * x * y * z.
    std::optional<Formula> product(const Numbers& values) const {
        const auto atoms = factors();
        for (size_t i = 0; i < atoms.size(); ++i)
            for (size_t j = i; j < atoms.size(); ++j) {
                Numbers both;
                for (size_t p = 0; p < values.size(); ++p) both.push_back(atoms[i].values[p] * atoms[j].values[p]);
                Terms terms = atoms[i].formula.terms;
                terms.insert(terms.end(), atoms[j].formula.terms.begin(), atoms[j].formula.terms.end());
                terms.push_back({Formula::Kind::multiply, 0});
                if (const auto c = factor(values, both)) return scaled(terms, *c, 0);
                if (!divides(values, both)) continue;
                for (size_t k = j; k < atoms.size(); ++k) {
                    Numbers all;
                    for (size_t p = 0; p < values.size(); ++p) all.push_back(both[p] * atoms[k].values[p]);
                    const auto c = factor(values, all);
                    if (!c) continue;
                    terms.insert(terms.end(), atoms[k].formula.terms.begin(), atoms[k].formula.terms.end());
                    terms.push_back({Formula::Kind::multiply, 0});
                    return scaled(terms, *c, 0);
                }
            }
        return {};
    }
    static bool divides(const Numbers& values, const Numbers& parts) {
        for (size_t p = 0; p < values.size(); ++p)
            if (parts[p] == 0 || values[p] % parts[p] != 0) return false;
        return true;
    }
    static std::optional<int64_t> factor(const Numbers& values, const Numbers& parts) {
        if (!divides(values, parts)) return {};
        const int64_t c = values[0] / parts[0];
        for (size_t p = 0; p < values.size(); ++p)
            if (values[p] != c * parts[p]) return {};
        return c;
    }

    // x + y + a: what concatenation makes.
    std::optional<Formula> sum(const Numbers& values) const {
        for (const Atom& x : factors())
            for (const Atom& y : factors()) {
                const int64_t a = values[0] - x.values[0] - y.values[0];
                bool fits = true;
                for (size_t p = 0; p < values.size() && fits; ++p) fits = values[p] == x.values[p] + y.values[p] + a;
                if (!fits) continue;
                Terms terms = x.formula.terms;
                terms.insert(terms.end(), y.formula.terms.begin(), y.formula.terms.end());
                terms.push_back({Formula::Kind::add, 0});
                return scaled(terms, 1, a);
            }
        return {};
    }

    Model& model_;
    const std::vector<Numbers>& points_;
    std::vector<Atom> atoms_;
    std::map<Numbers, size_t> known_;
};

class Merging {
  public:
    Merging(std::span<Converted> models, const std::vector<Numbers>& points, const std::vector<Dimension>& dimensions)
        : models_(models), model_(models[0].model), points_(points) {
        model_.dimensions = dimensions;
        fitter_.emplace(model_, points_);
    }

    void run(const std::vector<std::vector<uint32_t>>& open) {
        for (size_t m = 1; m < models_.size(); ++m) {
            const Model& other = models_[m].model;
            if (other.values.size() != model_.values.size() || other.steps.size() != model_.steps.size() ||
                other.outputs != model_.outputs)
                refuse(str("at the sizes ", Shape(points_[m]), " there are other steps: ", other.steps.size(),
                           " instead of ", model_.steps.size()));
        }
        for (size_t i = 0; i < model_.inputs.size(); ++i)
            for (size_t axis = 0; axis < open[i].size(); ++axis)
                if (open[i][axis] != kNone) numbers_of_input(i, axis);
        for (size_t v = 0; v < model_.values.size(); ++v) merge_value(v);
        for (size_t s = 0; s < model_.steps.size(); ++s) merge_step(s);
        for (const Numbers& point : points_)
            if (const ModelFault fault = check_sizes(model_, point); !fault.text.empty())
                refuse(str(fault.step == kNone ? "a value" : place_of(model_.steps[fault.step]), " at the sizes ",
                           Shape(point), ": ", fault.text));
    }

  private:
    template <class F>
    Numbers each(const F& f) const {
        Numbers values;
        for (const Converted& m : models_) values.push_back(f(m.model));
        return values;
    }
    template <class F>
    bool all_equal(const F& f) const {
        for (const Converted& m : models_)
            if (!(f(m.model) == f(model_))) return false;
        return true;
    }

    template <class F>
    void fit(Number& number, const std::string& where, const F& f) {
        const Numbers values = each([&](const Model& m) { return f(m).value; });
        const auto made = fitter_->fit(values);
        if (!made) refuse(str(where, ": the number ", Shape(values), " is no formula of the open sizes"));
        number = *made;
    }
    template <class F>
    void fit_list(std::vector<Number>& numbers, const std::string& where, const F& f) {
        if (!all_equal([&](const Model& m) { return f(m).size(); })) refuse(where + ": its rank depends on the sizes");
        for (size_t i = 0; i < numbers.size(); ++i)
            fit(numbers[i], where, [&](const Model& m) -> const Number& { return f(m)[i]; });
    }

    void numbers_of_input(size_t i, size_t axis) {
        const uint32_t v = model_.inputs[i];
        fit(model_.values[v].shape[axis], str("input ", i),
            [&](const Model& m) -> const Number& { return m.values[v].shape[axis]; });
    }

    void merge_value(size_t v) {
        Value& value = model_.values[v];
        const std::string where = str("value ", v);
        if (!all_equal([&](const Model& m) {
                return std::tuple(m.values[v].home, m.values[v].dtype, m.values[v].form, m.values[v].bytes);
            }) &&
            value.home == Value::Home::constant)
            refuse_constant(model_, v);
        if (!all_equal([&](const Model& m) { return std::pair(m.values[v].home, m.values[v].dtype); }))
            refuse(where + " is of another kind at other sizes");
        fit_list(value.shape, where, [&](const Model& m) -> const std::vector<Number>& { return m.values[v].shape; });
        if (!all_equal([&](const Model& m) { return m.values[v].shares; })) value.shares = kNone;
    }

    void merge_view(View& view, const std::string& where, const std::function<const View&(const Model&)>& f) {
        if (!all_equal([&](const Model& m) { return f(m).value; })) refuse(where + ": it has other operands");
        if (!all_equal([&](const Model& m) { return f(m).whole; })) refuse(where + ": its operands lie elsewhere");
        fit_list(view.shape, where, [&](const Model& m) -> const std::vector<Number>& { return f(m).shape; });
        fit_list(view.strides, where, [&](const Model& m) -> const std::vector<Number>& { return f(m).strides; });
        fit(view.offset, where, [&](const Model& m) -> const Number& { return f(m).offset; });
    }

    void merge_step(size_t s) {
        Step& step = model_.steps[s];
        const std::string where = place_of(step);
        if (!all_equal([&](const Model& m) {
                const Step& o = m.steps[s];
                return std::tuple(o.kind, o.operands.size(), o.results.size(), o.attributes.size());
            }))
            refuse(where + " is another one at other sizes");
        for (size_t i = 0; i < step.operands.size(); ++i)
            merge_view(step.operands[i], where,
                       [s, i](const Model& m) -> const View& { return m.steps[s].operands[i]; });
        for (size_t i = 0; i < step.results.size(); ++i)
            merge_view(step.results[i], where, [s, i](const Model& m) -> const View& { return m.steps[s].results[i]; });
        for (size_t i = 0; i < step.attributes.size(); ++i) {
            if (!all_equal([&](const Model& m) {
                    const Attribute& a = m.steps[s].attributes[i];
                    return std::tuple(a.name, a.numbers, a.text);
                }))
                refuse(str(where, ": its attribute ", step.attributes[i].name, " depends on the sizes"));
            fit_list(step.attributes[i].integers, where,
                     [&](const Model& m) -> const std::vector<Number>& { return m.steps[s].attributes[i].integers; });
        }
        fit_list(step.sizes, where, [&](const Model& m) -> const std::vector<Number>& { return m.steps[s].sizes; });
        if (step.loop != kNone) merge_loop(s, where);
    }

    // The program of a step with what may depend on sizes left out, to be compared.
    static std::string text_of(graph::LoopProgram program) {
        for (graph::LoopInstruction& i : program.code) {
            i.number = 0;
            i.integer = i.depth = i.stride = 0;
        }
        std::ranges::fill(program.depth, 0);
        return program.text();
    }
    const graph::LoopProgram& program_of(const Model& m, size_t s) const { return m.loops[m.steps[s].loop].program; }

    void merge_loop(size_t s, const std::string& where) {
        if (!all_equal([&](const Model& m) { return text_of(program_of(m, s)); }))
            refuse(where + ": its loop is another one at other sizes");
        graph::LoopProgram& own = model_.loops[model_.steps[s].loop].program;
        for (size_t d = 0; d < own.depth.size(); ++d)
            if (!all_equal([&](const Model& m) { return program_of(m, s).depth[d]; })) own.depth[d] = 0;
        for (size_t i = 0; i < own.code.size(); ++i) {
            auto patch = [&](Patch::Field field, const auto& f) {
                if (all_equal(f)) return;
                Patch made{static_cast<uint32_t>(i), field, 0};
                const auto number = fitter_->fit(each([&](const Model& m) { return static_cast<int64_t>(f(m)); }));
                if (!number) refuse(where + ": a number in its loop is no formula of the sizes");
                made.value = *number;
                model_.steps[s].patches.push_back(made);
            };
            auto code = [&](const Model& m) -> const graph::LoopInstruction& { return program_of(m, s).code[i]; };
            patch(Patch::Field::depth, [&](const Model& m) { return code(m).depth; });
            patch(Patch::Field::stride, [&](const Model& m) { return code(m).stride; });
            if (all_equal([&](const Model& m) { return code(m).number; })) continue;
            auto is_whole = [](double v) {
                return std::abs(v - std::round(v)) < 1e-9 * std::abs(v) && std::abs(v) < 1e15;
            };
            bool whole = true, inverse = true;
            for (const Converted& m : models_) {
                whole &= is_whole(code(m.model).number);
                inverse &= is_whole(1 / code(m.model).number);
            }
            if (!whole && !inverse) refuse(where + ": a number in its loop depends on the sizes");
            if (whole)
                patch(Patch::Field::number, [&](const Model& m) { return code(m).number; });
            else
                patch(Patch::Field::inverse, [&](const Model& m) { return std::round(1 / code(m).number); });
        }
    }

    std::span<Converted> models_;
    Model& model_;
    const std::vector<Numbers>& points_;
    std::optional<Fitter> fitter_;
};

}  // namespace

Converted resizable(std::span<Converted> models, const std::vector<std::vector<int64_t>>& points,
                    const std::vector<Dimension>& dimensions, const std::vector<std::vector<uint32_t>>& open) {
    Merging(models, points, dimensions).run(open);
    return std::move(models[0]);
}

void drop_constants(Converted& made, const Converted& first) {
    const std::vector<Value>& known = first.model.values;
    for (size_t v = 0; v < made.model.values.size(); ++v) {
        Value& value = made.model.values[v];
        // What differs otherwise is for resizable() to refuse.
        const bool has_other = value.data && v < known.size() && known[v].data && known[v].bytes == value.bytes;
        if (has_other && known[v].data != value.data && std::memcmp(known[v].data, value.data, value.bytes) != 0)
            refuse_constant(made.model, v);
        value.data = nullptr;
    }
    made.constants.clear();
}

}  // namespace lunaria::lite
