// Operator: einsum. The equation is parsed into labels; operands are then contracted in the order that takes the fewest
// multiplications, each step one batched matrix product (or a broadcast product, when nothing is summed), so that the
// gradient follows by composition.
//
// Labels are small integers: 0..51 for A-Z and a-z in alphabetical order, 52.. for the axes that an ellipsis stands
// for, counted from the right (52 is the last one), as broadcasting aligns them.
#include "core/operator/infer.h"
#include "core/ops/contraction_order.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

constexpr int kEllipsis = 52;
constexpr int kLabels = kEllipsis + kMaxRank;
using Labels = std::vector<int>;

bool contains(const Labels& labels, int label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string label_name(int label) {
    if (label >= kEllipsis) return "...";
    return std::string(1, static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26));
}

// One operand's or the result's subscripts; the ellipsis is kept as one entry of value kEllipsis.
Labels parse_subscripts(std::string_view equation, std::string_view text) {
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
        char ch = text[i];
        if (ch == ' ' || ch == '\t') continue;
        if (ch >= 'A' && ch <= 'Z') {
            labels.push_back(ch - 'A');
        } else if (ch >= 'a' && ch <= 'z') {
            labels.push_back(26 + ch - 'a');
        } else if (text.substr(i, 3) == "...") {
            if (contains(labels, kEllipsis))
                throw value_error("einsum", str("equation '", equation, "' has two ellipses in one operand"));
            labels.push_back(kEllipsis);
            i += 2;
        } else {
            throw value_error("einsum", str("equation '", equation, "' has the character '", ch,
                                            "' in its subscripts: they are letters, ',', '->' and '...'"));
        }
    }
    return labels;
}

// Puts `count` labels in place of the ellipsis.
Labels spread_ellipsis(const Labels& labels, int count) {
    Labels spread;
    for (int label : labels) {
        if (label != kEllipsis) {
            spread.push_back(label);
            continue;
        }
        for (int i = count; i-- > 0;) spread.push_back(kEllipsis + i);
    }
    return spread;
}

struct Equation {
    std::vector<Labels> operands;
    Labels result;
};

Equation parse_equation(const std::string& text, const std::vector<Shape>& shapes) {
    Equation eq;
    size_t arrow = text.find("->");
    std::string_view left = std::string_view(text).substr(0, arrow);
    for (size_t start = 0;;) {
        size_t comma = left.find(',', start);
        eq.operands.push_back(parse_subscripts(text, left.substr(start, comma - start)));
        if (comma == std::string_view::npos) break;
        start = comma + 1;
    }
    if (eq.operands.size() != shapes.size())
        throw value_error("einsum", str("equation '", text, "' has subscripts for ", eq.operands.size(),
                                        " operands, but there are ", shapes.size()));
    int widest = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
        Labels& labels = eq.operands[i];
        bool ellipsis = contains(labels, kEllipsis);
        int named = static_cast<int>(labels.size()) - ellipsis, rank = shapes[i].rank();
        if (ellipsis ? named > rank : named != rank)
            throw shape_error(
                "einsum", str("operand ", i, " has shape ", shapes[i], " (rank ", rank, "), but its subscripts name ",
                              named, " dimensions in '", text.substr(0, 60), "'"));
        if (ellipsis) widest = std::max(widest, rank - named);
        labels = spread_ellipsis(labels, rank - named);
    }
    if (arrow != std::string::npos) {
        Labels labels = parse_subscripts(text, std::string_view(text).substr(arrow + 2));
        for (size_t i = 0; i < labels.size(); ++i) {
            bool known = labels[i] == kEllipsis;
            for (const Labels& operand : eq.operands) known |= contains(operand, labels[i]);
            if (!known)
                throw value_error("einsum", str("output subscript '", label_name(labels[i]), "' of '", text,
                                                "' does not occur in any operand"));
            if (std::find(labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, labels.end(), labels[i]) != labels.end())
                throw value_error("einsum",
                                  str("output subscript '", label_name(labels[i]), "' of '", text, "' occurs twice"));
        }
        eq.result = spread_ellipsis(labels, widest);
        return eq;
    }
    // Without an arrow: the ellipsis, then every label that occurs once, in alphabetical order.
    for (int i = widest; i-- > 0;) eq.result.push_back(kEllipsis + i);
    for (int label = 0; label < kEllipsis; ++label) {
        int64_t count = 0;
        for (const Labels& operand : eq.operands) count += std::count(operand.begin(), operand.end(), label);
        if (count == 1) eq.result.push_back(label);
    }
    return eq;
}

// A partial result: a tensor with one label per axis, none twice.
struct Term {
    Expr value;
    Labels labels;

    int64_t size_of_label(int label) const {
        auto at = std::find(labels.begin(), labels.end(), label);
        return at == labels.end() ? 1 : value.shape()[static_cast<int>(at - labels.begin())];
    }

    // The axes in the order of `order` (a permutation of the labels).
    Expr ordered(const Labels& order) const {
        Shape perm;
        bool same = true;
        for (size_t i = 0; i < order.size(); ++i) {
            auto at = std::find(labels.begin(), labels.end(), order[i]) - labels.begin();
            same &= at == static_cast<std::ptrdiff_t>(i);
            perm.push_back(at);
        }
        return same ? value : value.transpose(perm);
    }

    // Repeated labels become one: the diagonal.
    void take_diagonals() {
        for (size_t i = 0; i < labels.size(); ++i)
            for (size_t j = i + 1; j < labels.size();) {
                if (labels[i] != labels[j]) {
                    ++j;
                    continue;
                }
                Shape shape = value.shape();
                if (shape[static_cast<int>(i)] != shape[static_cast<int>(j)])
                    throw shape_error("einsum",
                                      str("dimension '", label_name(labels[i]),
                                          "' is repeated in an operand, "
                                          "but has sizes ",
                                          shape[static_cast<int>(i)], " and ", shape[static_cast<int>(j)], " there"));
                value = call("diagonal", {value, 0, static_cast<int64_t>(i), static_cast<int64_t>(j)});
                int label = labels[i];
                labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(j));
                labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(i));
                labels.push_back(label);
                j = i + 1;
                if (i >= labels.size()) break;
            }
    }

    // Axes of size 1 whose label is larger elsewhere broadcast: they are dropped.
    void drop_broadcast_axes(const std::array<int64_t, kLabels>& sizes) {
        Shape kept, shape = value.shape();
        Labels kept_labels;
        for (size_t i = 0; i < labels.size(); ++i) {
            int64_t n = shape[static_cast<int>(i)];
            if (n == 1 && sizes[static_cast<size_t>(labels[i])] != 1) continue;
            kept.push_back(n);
            kept_labels.push_back(labels[i]);
        }
        value = value.reshape(kept);
        labels = std::move(kept_labels);
    }

    // Sums over the labels that are no longer wanted.
    template <class Wanted>
    void sum_unless(Wanted wanted) {
        Shape axes;
        Labels kept;
        for (size_t i = 0; i < labels.size(); ++i) {
            if (wanted(labels[i]))
                kept.push_back(labels[i]);
            else
                axes.push_back(static_cast<int64_t>(i));
        }
        value = value.sum(axes);
        labels = std::move(kept);
    }
};

Labels joined(std::initializer_list<const Labels*> lists) {
    Labels all;
    for (const Labels* list : lists) all.insert(all.end(), list->begin(), list->end());
    return all;
}

// The product of two terms, summed over the labels that both have and that are not wanted later.
template <class Wanted>
Term contract(Term a, Term b, Wanted wanted) {
    a.sum_unless([&](int label) { return wanted(label) || contains(b.labels, label); });
    b.sum_unless([&](int label) { return wanted(label) || contains(a.labels, label); });
    Labels batch, left, right, inner;
    for (int label : a.labels) {
        if (!contains(b.labels, label))
            left.push_back(label);
        else
            (wanted(label) ? batch : inner).push_back(label);
    }
    for (int label : b.labels)
        if (!contains(a.labels, label)) right.push_back(label);

    auto shape_of = [](const Term& t, const Labels& labels) {
        Shape s;
        for (int label : labels) s.push_back(t.size_of_label(label));
        return s;
    };
    Term out;
    out.labels = joined({&batch, &left, &right});
    Shape batches = shape_of(a, batch), rows = shape_of(a, left), columns = shape_of(b, right),
          depth = shape_of(a, inner);
    Expr x = a.ordered(joined({&batch, &left, &inner})), y = b.ordered(joined({&batch, &inner, &right}));
    Shape full = batches;
    for (int64_t n : rows) full.push_back(n);
    if (inner.empty()) {
        Shape x_shape = full, y_shape = batches;
        for (size_t i = 0; i < right.size(); ++i) x_shape.push_back(1);
        for (size_t i = 0; i < left.size(); ++i) y_shape.push_back(1);
        for (int64_t n : columns) y_shape.push_back(n);
        out.value = x.reshape(x_shape) * y.reshape(y_shape);
        return out;
    }
    for (int64_t n : columns) full.push_back(n);
    Shape x_shape{rows.size(), depth.size()}, y_shape{depth.size(), columns.size()};
    if (!batch.empty()) {
        x_shape.insert(0, batches.size());
        y_shape.insert(0, batches.size());
    }
    out.value = matmul(x.reshape(x_shape), y.reshape(y_shape)).reshape(full);
    return out;
}

// The product of all terms, summed over the labels that the result lacks.
Term product_of_sizes(std::vector<Term> terms, const Labels& result, const std::array<int64_t, kLabels>& sizes) {
    auto set_of = [](const Labels& labels) {
        LabelSet set = 0;
        for (int label : labels) set |= LabelSet{1} << label;
        return set;
    };
    LabelSizes numbers;
    numbers.fill(1);
    // Unknown sizes are taken as large ones.
    for (size_t i = 0; i < sizes.size(); ++i)
        numbers[i] = sizes[i] == kUnknownDim ? 100 : static_cast<double>(std::max<int64_t>(sizes[i], 1));
    std::vector<LabelSet> sets;
    for (const Term& t : terms) sets.push_back(set_of(t.labels));
    for (auto [left, right] : contraction_order(sets, set_of(result), numbers).steps) {
        LabelSet wanted = set_of(result);
        sets[left] = sets[right] = 0;
        for (LabelSet set : sets) wanted |= set;
        terms.push_back(contract(std::move(terms[left]), std::move(terms[right]),
                                 [&](int label) { return (wanted >> label & 1) != 0; }));
        sets.push_back(set_of(terms.back().labels));
    }
    Term all = std::move(terms.back());
    all.sum_unless([&](int label) { return contains(result, label); });
    return all;
}

Expr expand_einsum(const ExpandCall& c) {
    std::vector<Shape> shapes;
    for (const TensorType& t : c.types(1)) shapes.push_back(t.shape);
    Equation eq = parse_equation(c.string(0), shapes);

    std::array<int64_t, kLabels> sizes;
    sizes.fill(1);
    for (size_t i = 0; i < shapes.size(); ++i)
        for (size_t axis = 0; axis < eq.operands[i].size(); ++axis) {
            int label = eq.operands[i][axis];
            int64_t n = shapes[i][static_cast<int>(axis)], &known = sizes[static_cast<size_t>(label)];
            if (n != 1 && known != 1 && n != known)
                throw shape_error(
                    "einsum", str("dimension '", label_name(label), "' has size ", known, " in one operand and size ",
                                  n, " in operand ", i, " with shape ", shapes[i], " ('", c.string(0), "')"));
            if (n != 1) known = n;
        }

    std::vector<Term> terms;
    for (size_t i = 0; i < shapes.size(); ++i) {
        Term t{c.in(1)[i], eq.operands[i]};
        t.take_diagonals();
        t.drop_broadcast_axes(sizes);
        terms.push_back(std::move(t));
    }
    Term all = product_of_sizes(std::move(terms), eq.result, sizes);

    // Labels of size 1 that drop_broadcast_axes removed come back.
    Shape shape;
    Labels present;
    for (int label : eq.result) {
        shape.push_back(sizes[static_cast<size_t>(label)]);
        if (contains(all.labels, label)) present.push_back(label);
    }
    return all.ordered(present).reshape(shape);
}

}  // namespace

void add_einsum_ops(Registry& ops) {
    ops.add("einsum(equation: string, operands: tensors)")
        .doc(
            "Sums of products over the axes that an equation names: \"ij,jk->ik\" is a matrix product, \"ii->i\" a "
            "diagonal, \"...ij->...ji\" a transpose of batches; without an arrow, labels that occur once remain.")
        .example("einsum(\"ij,jk->ik\", tensor{{1.0, 2.0}}, tensor{{3.0}, {4.0}})", "tensor{{11.0}}")
        .example("einsum(\"ii\", tensor{{1.0, 2.0}, {3.0, 4.0}})", "tensor(5.0)")
        .expand(expand_einsum)
        .sample("\"ij,jk->ik\", {f32[2,3], f32[3,4]}")
        .sample("\"...ij,...jk->...ik\", {f32[2,1,2,3], f32[3,3,2]}")
        .sample("\"iij->ji\", {f32[3,3,2]}")
        .sample("\"bi,bj,b->ij\", {f32[2,3], f32[2,5], f32[2]}");
}

}  // namespace lunaria
