// The rules of all operators, tested with the samples of their entries: each factor is cut into two, three and four
// pieces, which also are uneven and empty ones, and the pieces are computed one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/ops/sample.h"
#include "core/random/random.h"
#include "tests/parallel/pieces.h"

namespace lunaria::parallel {
namespace {

using testing::difference;
using testing::in_pieces;
using testing::tensors_of;

struct Sample {
    const Op* op;
    const char* text;
    std::vector<Value> args;

    std::string name() const { return str(op->name(), "(", text, ")"); }
    Value whole() const {
        default_generator().set_state({7, 0});
        return run(*op, args);
    }
};

// Operators with kernels or views of their own, which are not composites.
template <class F>
void for_each_sample(F&& f) {
    const testing::OneThread one;
    for (const auto& op : registry().all()) {
        if (op->host_fn || !op->infer_fn) continue;
        for (const char* text : op->samples) f(Sample{op.get(), text, sample_args(*op, text, 1)});
    }
}

std::vector<std::vector<Interval>> pieces(const Rule& rule, int factor, int64_t parts) {
    std::vector<std::vector<Interval>> choices;
    for (int64_t part = 0; part < parts; ++part) {
        choices.push_back(rule.whole());
        choices.back()[static_cast<size_t>(factor)] =
            piece_of(rule.factors[static_cast<size_t>(factor)].size, part, parts);
    }
    return choices;
}

// Sums in another order, and products of matrices whose kernels depend on their sizes.
double tolerance_of(const Rule& rule, int factor) {
    const Factor& f = rule.factors[static_cast<size_t>(factor)];
    const bool sums = f.merge == Merge::sum || f.merge == Merge::prod;
    return sums || rule.op().flops_fn || rule.op().expand_fn ? 2e-5 : 0;
}

// Each factor of a call in these numbers of pieces.
void expect_pieces_to_fit(const Sample& s, double least_tolerance, std::initializer_list<int64_t> numbers) {
    SCOPED_TRACE(s.name());
    try {
        const auto rule = rule_of(*s.op, s.args);
        const std::vector<Tensor> want = tensors_of(s.whole());
        for (int f = 0; f < rule->count(); ++f) {
            const Factor& factor = rule->factors[static_cast<size_t>(f)];
            if (!factor.can_be_cut() || factor.kind == Kind::spread) continue;
            const double tolerance = std::max(tolerance_of(*rule, f), s.op->only_moves ? 0 : least_tolerance);
            for (int64_t parts : numbers)
                EXPECT_EQ(difference(in_pieces(*rule, pieces(*rule, f, parts)), want, tolerance), "")
                    << describe(*rule) << ", " << factor.letter << " in " << parts;
        }
    } catch (const Error& e) {
        ADD_FAILURE() << e.what();
    }
}

TEST(rules, pieces_give_what_the_whole_gives) {
    for_each_sample([](const Sample& s) {
        if (!s.op->is_ordered()) expect_pieces_to_fit(s, 0, {2, 3, 4});
    });
}

// The text of a sample with other sizes of its tensors, the same for sizes that were equal.
std::string with_other_sizes(std::string_view text, int64_t factor, int64_t more) {
    std::string result;
    bool in_shape = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[' || text[i] == ']') in_shape = text[i] == '[';
        if (!in_shape || !std::isdigit(static_cast<unsigned char>(text[i]))) {
            result += text[i];
            continue;
        }
        int64_t size = 0;
        for (; std::isdigit(static_cast<unsigned char>(text[i])); ++i) size = size * 10 + text[i] - '0';
        --i;
        result += std::to_string(size > 1 ? size * factor + more : size);
    }
    return result;
}

// Samples whose attributes go with other sizes, and halves. Kernels round the last elements of a row in another way
// than whole vectors of them.
TEST(rules, hold_for_other_sizes_and_halves) {
    int tried = 0;
    auto expect_if_valid = [&](const Op& op, const std::string& text, DType dtype) {
        Sample s{&op, text.c_str(), {}};
        try {
            s.args = sample_args(op, text, 3);
            for (Value& v : s.args)
                if (v.is_tensor() && v.tensor().dtype() == DType::f32) v = Value(v.tensor().cast(dtype));
            int64_t elements = 0;
            for (const Tensor& t : tensors_of(Value::list(std::vector<Value>(s.args)))) elements += t.size();
            if (elements > 4000) return;  // the same rules, for much longer
            s.whole();
        } catch (const std::exception&) {
            return;  // an attribute names the old size
        }
        ++tried;
        expect_pieces_to_fit(s, dtype == DType::f32 ? 1e-4 : 2e-2, {2, 3, 5});
    };
    for_each_sample([&](const Sample& s) {
        if (s.op->is_ordered()) return;
        expect_if_valid(*s.op, with_other_sizes(s.text, 2, 1), DType::f32);
        expect_if_valid(*s.op, with_other_sizes(s.text, 3, 0), DType::f32);
        expect_if_valid(*s.op, s.text, DType::f16);
    });
    EXPECT_GT(tried, 1500);
}

// Several axes at once, as meshes of several axes cut them.
TEST(rules, pieces_of_two_factors_give_what_the_whole_gives) {
    for_each_sample([](const Sample& s) {
        if (s.op->declared_effect() >= Effect::ordered) return;
        SCOPED_TRACE(s.name());
        const auto rule = rule_of(*s.op, s.args);
        const std::vector<Tensor> want = tensors_of(s.whole());
        std::vector<int> cut;
        for (int f = 0; f < rule->count(); ++f)
            if (rule->factors[static_cast<size_t>(f)].can_be_cut() &&
                rule->factors[static_cast<size_t>(f)].kind != Kind::spread)
                cut.push_back(f);
        if (cut.size() < 2) return;
        // The first and the last, which are of different kinds mostly.
        const int a = cut.front(), b = cut.back();
        std::vector<std::vector<Interval>> choices;
        for (const auto& outer : pieces(*rule, a, 2))
            for (auto inner : pieces(*rule, b, 3)) {
                inner[static_cast<size_t>(a)] = outer[static_cast<size_t>(a)];
                choices.push_back(std::move(inner));
            }
        const double tolerance = std::max(tolerance_of(*rule, a), tolerance_of(*rule, b));
        EXPECT_EQ(difference(in_pieces(*rule, choices), want, tolerance), "") << describe(*rule);
    });
}

// A call on parts of some operands, cut in the middle of one axis each, without any rule.
class Probe {
  public:
    Probe(const Sample& sample, const Rule& rule) : sample_(sample), rule_(rule), want_(tensors_of(sample.whole())) {}

    // The choices of axes that work although no factor names them: an axis of each operand (-1: none), of each result.
    std::vector<std::string> found() {
        if (want_.empty() || std::ranges::any_of(want_, [](const Tensor& t) { return t.size() == 0; })) return {};
        std::vector<int> axes(rule_.operands.size(), -1);
        choose(axes, 0);
        return found_;
    }

  private:
    static bool is_free(const std::vector<AxisFactors>& axes, int axis) {
        return axes[static_cast<size_t>(axis)].empty();
    }

    void choose(std::vector<int>& axes, size_t at) {
        if (at == axes.size()) return try_axes(axes);
        choose(axes, at + 1);
        for (int k = 0; k < rule_.operands[at].shape.rank(); ++k) {
            if (!is_free(rule_.operands[at].axes, k) || rule_.operands[at].shape[k] < 2) continue;
            axes[at] = k;
            choose(axes, at + 1);
            axes[at] = -1;
        }
    }
    int64_t size_of(const std::vector<int>& axes) const {
        int64_t size = 0;
        for (size_t i = 0; i < axes.size(); ++i) {
            if (axes[i] < 0) continue;
            const int64_t own = rule_.operands[i].shape[axes[i]];
            if (size != 0 && own != size) return 0;
            size = own;
        }
        return size;
    }
    void try_axes(const std::vector<int>& axes) {
        const int64_t size = size_of(axes);
        if (size == 0) return;
        std::vector<Tensor> parts[2];
        for (int64_t part : {0, 1}) {
            Work work = rule_.work(rule_.whole());
            for (size_t i = 0; i < axes.size(); ++i)
                if (axes[i] >= 0) work.operands[i][static_cast<size_t>(axes[i])] = piece_of(size, part, 2);
            try {
                default_generator().set_state({7, 0});
                parts[part] = tensors_of(run(*sample_.op, testing::local_args(rule_, work)));
            } catch (const Error&) {
                return;
            }
        }
        std::string text;
        for (size_t j = 0; j < want_.size(); ++j) {
            const int axis = joined_along(j, parts[0][j], parts[1][j], size);
            if (axis < 0) return;
            text += str(' ', axis);
        }
        std::string operands;
        for (int k : axes) operands += str(' ', k);
        found_.push_back(str(sample_.name(), ": axes", operands, " ->", text));
    }
    int joined_along(size_t result, const Tensor& a, const Tensor& b, int64_t size) const {
        const Tensor& whole = want_[result];
        for (int k = 0; k < whole.rank(); ++k) {
            if (whole.dim(k) != size || a.rank() != whole.rank() || !is_free(rule_.results[result].axes, k)) continue;
            Region part;
            for (int64_t n : whole.shape()) part.push_back({0, n});
            part[static_cast<size_t>(k)] = piece_of(size, 0, 2);
            if (!difference({a}, {testing::part_of(whole, part)}, 0).empty()) continue;
            part[static_cast<size_t>(k)] = piece_of(size, 1, 2);
            if (difference({b}, {testing::part_of(whole, part)}, 0).empty()) return k;
        }
        return -1;
    }

    const Sample& sample_;
    const Rule& rule_;
    std::vector<Tensor> want_;
    std::vector<std::string> found_;
};

// Calls whose axis passes by chance, or whose results have sizes that are known only when they are computed.
bool may_be_silent(std::string_view text) {
    static constexpr std::string_view kCalls[] = {
        "reverse_sequence(f32[2,5,3], i64[2]:(1,5), 1)",   // no sequence is reversed beyond its first elements
        "reverse_sequence(f32[4,2], i64[2]:(0,4), 0, 1)",  // the same
        "sequence_mask(i64[2,3]:(1,5))",                   // the longest of all lengths
        "sparse_segment_mean(f32[5,2], i64[4]:(0,5), i64[4]:(1,2))",         // the last segment
        "avg_pool3d(f32[2,3,4,3], {1, 2, 3}, stride=1, padding={0, 1, 1})",  // a window of one element
    };
    return std::ranges::any_of(kCalls, [&](std::string_view call) { return text.starts_with(call); });
}

TEST(rules, name_all_axes_that_pass) {
    for_each_sample([](const Sample& s) {
        if (!s.op->is_repeatable()) return;
        const auto rule = rule_of(*s.op, s.args);
        for (const std::string& text : Probe(s, *rule).found())
            if (!may_be_silent(text)) ADD_FAILURE() << text;
    });
}

// The arguments with other numbers in some operands: `make` gives them from those of the sample and those of another.
std::vector<Value> mixed(const Rule& rule, const std::vector<Value>& args, const std::vector<Value>& others,
                         const std::vector<bool>& chosen,
                         const std::function<Tensor(const Tensor&, const Tensor&)>& make) {
    std::vector<Value> result = args;
    for (size_t i = 0; i < rule.operands.size(); ++i) {
        if (!chosen[i]) continue;
        const Operand& o = rule.operands[i];
        if (o.item < 0) {
            result[o.argument] = Value(make(args[o.argument].tensor(), others[o.argument].tensor()));
            continue;
        }
        const auto item = static_cast<size_t>(o.item);
        std::vector<Value> items = result[o.argument].items();
        items[item] = Value(make(args[o.argument].items()[item].tensor(), others[o.argument].items()[item].tensor()));
        result[o.argument] = Value::list(std::move(items));
    }
    return result;
}

std::vector<Tensor> joined(const char* op, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    std::vector<Tensor> result;
    for (size_t i = 0; i < a.size(); ++i)
        result.push_back(run(registry().get(op), {Value(a[i]), Value(b[i])}).tensor());
    return result;
}

// Terms of a sum pass through: f(a + b) = f(a) + f(b) in each operand that is said to be linear, or in all together;
// where only places change, the larger ones of two tensors pass as well.
TEST(rules, incomplete_operands_pass_where_the_rule_says_so) {
    int tried = 0;
    for_each_sample([&](const Sample& s) {
        if (!s.op->is_repeatable()) return;
        const auto rule = rule_of(*s.op, s.args);
        const std::vector<Value> others = sample_args(*s.op, s.text, 2);
        const size_t count = rule->operands.size();
        auto expect = [&](const char* how, const std::vector<bool>& chosen) {
            for (size_t i = 0; i < count; ++i) {
                const Operand& o = rule->operands[i];
                const Value& v = s.args[o.argument];
                const DType t = (o.item < 0 ? v : v.items()[static_cast<size_t>(o.item)]).tensor().dtype();
                if (chosen[i] && !is_float(t)) return;
            }
            SCOPED_TRACE(str(s.name(), ' ', how));
            ++tried;
            auto both = [&](const Tensor& a, const Tensor& b) { return joined(how, {a}, {b})[0]; };
            auto other = [](const Tensor&, const Tensor& b) { return b; };
            const auto of_both = tensors_of(run(*s.op, mixed(*rule, s.args, others, chosen, both)));
            const auto of_a = tensors_of(run(*s.op, s.args));
            const auto of_b = tensors_of(run(*s.op, mixed(*rule, s.args, others, chosen, other)));
            EXPECT_EQ(difference(joined(how, of_a, of_b), of_both, 2e-5), "");
        };
        for (size_t i = 0; i < count; ++i) {
            std::vector<bool> chosen(count);
            chosen[i] = true;
            if (rule->operands[i].is_linear) expect("add", chosen);
            if (rule->only_moves && rule->operands[i].is_linear) expect("maximum", chosen);
        }
        if (rule->is_jointly_linear) expect("add", std::vector<bool>(count, true));
        if (rule->is_jointly_linear && rule->only_moves) expect("maximum", std::vector<bool>(count, true));
    });
    EXPECT_GT(tried, 150);
    const Value x(Tensor::zeros(DType::f32, {2, 3}));
    EXPECT_TRUE(rule_of(registry().get("add"), std::vector<Value>{x, x})->is_jointly_linear);
    EXPECT_FALSE(rule_of(registry().get("add"), std::vector<Value>{x, Value(1.0)})->is_jointly_linear);
}

Value copy_of(const Value& v) {
    if (v.is_tensor()) return Value(v.tensor().copy());
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(copy_of(item));
    return Value::list(std::move(items));
}

// Operators that change their operands: the parts of the operands hold what those of the whole hold afterwards.
TEST(rules, changes_of_pieces_are_those_of_the_whole) {
    int tried = 0;
    for_each_sample([&](const Sample& s) {
        if (!s.op->writes()) return;
        const auto rule = rule_of(*s.op, s.args);
        std::vector<Value> changed;
        for (const Value& v : s.args) changed.push_back(copy_of(v));
        if (rule->factors.empty()) return;
        SCOPED_TRACE(s.name());
        run(*s.op, changed);
        for (int f = 0; f < rule->count(); ++f)
            for (int64_t part = 0; part < 2; ++part) {
                ++tried;
                const Work work = rule->work(pieces(*rule, f, 2)[static_cast<size_t>(part)]);
                const std::vector<Value> local = testing::local_args(*rule, work);
                rule->run(eager_builder(), local, work);
                const std::vector<Tensor> got = tensors_of(Value::list(std::vector<Value>(local)));
                const std::vector<Tensor> whole = tensors_of(Value::list(std::vector<Value>(changed)));
                ASSERT_EQ(got.size(), work.operands.size());
                for (size_t i = 0; i < got.size(); ++i)
                    EXPECT_EQ(difference({got[i]}, {testing::part_of(whole[i], work.operands[i])}, 0), "");
            }
    });
    EXPECT_GT(tried, 20);
}

// Calls that are reduced first and used afterwards, as a composition of other operators.
TEST(rules, compositions_give_what_the_operator_gives) {
    int tried = 0;
    for_each_sample([&](const Sample& s) {
        const auto rule = rule_of(*s.op, s.args);
        if (std::ranges::none_of(rule->factors, [](const Factor& f) { return f.kind == Kind::spread; })) return;
        SCOPED_TRACE(s.name());
        ++tried;
        try {
            const Value composed = rule->expanded(eager_builder(), s.args);
            EXPECT_EQ(difference(tensors_of(composed), tensors_of(s.whole()), 2e-5), "");
        } catch (const Error& e) {
            ADD_FAILURE() << e.what();
        }
    });
    EXPECT_GT(tried, 40);
}

}  // namespace
}  // namespace lunaria::parallel
