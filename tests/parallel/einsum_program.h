// Programs in the words of einsum, for tests: op("matmul", "x w > y", "bsh,hf->bsf").
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include "core/parallel/strategies.h"

namespace lunaria::parallel {

class EinsumProgram {
  public:
    explicit EinsumProgram(std::map<char, int64_t> sizes, std::string batch = "b")
        : sizes_(std::move(sizes)), batch_(batch) {}

    Program program;
    int layer = -1;

    // A tensor that is not there yet is a parameter where its name begins with `w`, else an input.
    ProgramOperator& op(const std::string& name, const std::string& names, const std::string& letters,
                        const std::string& spreads = "", const std::string& whole = "") {
        ProgramOperator made;
        made.name = name;
        made.layer = layer;
        const std::string left = letters.substr(0, letters.find("->")), right = letters.substr(letters.find("->") + 2);
        std::string all;
        for (char c : left + right)
            if (c != ',' && all.find(c) == std::string::npos) all += c;
        std::istringstream words(names), parts(left);
        std::string word, part;
        double flops = 2;
        for (char c : all) {
            Letter letter{std::string(1, c), sizes_.at(c)};
            letter.merges = right.find(c) == std::string::npos;
            letter.spreads = spreads.find(c) != std::string::npos;
            letter.can_be_cut = whole.find(c) == std::string::npos;
            letter.is_batch = batch_.find(c) != std::string::npos;
            flops *= static_cast<double>(letter.size);
            made.letters.push_back(letter);
        }
        while (words >> word && word != ">") {
            std::getline(parts, part, ',');
            made.operands.push_back(use(word, part, all, false));
        }
        words >> word;
        made.results.push_back(use(word, right, all, true));
        if (std::ranges::count(left, ',') == 1 && spreads.empty() && left.size() > right.size() && name != "add")
            made.flops = flops;
        if (name == "add") made.is_jointly_linear = true;
        if (made.flops > 0)
            for (Use& u : made.operands) u.is_linear = true;
        program.operators.push_back(made);
        return program.operators.back();
    }

    int tensor(const std::string& name) const { return names_.at(name); }

    static EinsumProgram gpt_layers(int layers, int64_t batch, int64_t sequence, int64_t hidden, int64_t heads) {
        EinsumProgram p({{'b', batch},
                         {'s', sequence},
                         {'t', sequence},
                         {'h', hidden},
                         {'n', heads},
                         {'d', hidden / heads},
                         {'f', 4 * hidden},
                         {'k', 3}});
        std::string x = "x";
        for (int i = 0; i < layers; ++i) {
            const std::string l = std::to_string(i);
            p.layer = i;
            p.op("norm", x + " > a" + l, "bsh->bsh", "h");
            p.op("q", "a" + l + " wq" + l + " > q" + l, "bsh,hnd->bsnd");
            p.op("k", "a" + l + " wk" + l + " > k" + l, "bth,hnd->btnd");
            p.op("v", "a" + l + " wv" + l + " > v" + l, "bth,hnd->btnd");
            p.op("scores", "q" + l + " k" + l + " > c" + l, "bsnd,btnd->bnst");
            p.op("softmax", "c" + l + " > p" + l, "bnst->bnst", "t");
            p.op("values", "p" + l + " v" + l + " > o" + l, "bnst,btnd->bsnd");
            p.op("proj", "o" + l + " wo" + l + " > r" + l, "bsnd,ndh->bsh");
            p.op("add", x + " r" + l + " > y" + l, "bsh,bsh->bsh");
            p.op("norm", "y" + l + " > e" + l, "bsh->bsh", "h");
            p.op("fc1", "e" + l + " wi" + l + " > g" + l, "bsh,hf->bsf");
            p.op("gelu", "g" + l + " > z" + l, "bsf->bsf");
            p.op("fc2", "z" + l + " wp" + l + " > m" + l, "bsf,fh->bsh");
            p.op("add", "y" + l + " m" + l + " > x" + l, "bsh,bsh->bsh");
            x = "x" + l;
        }
        return p;
    }

  private:
    Use use(const std::string& name, const std::string& axes, const std::string& all, bool is_result) {
        auto [entry, is_new] = names_.try_emplace(name, static_cast<int>(program.tensors.size()));
        if (is_new) {
            ProgramTensor t;
            t.name = name;
            for (char c : axes) t.shape.push_back(sizes_.at(c));
            t.is_parameter = !is_result && name[0] == 'w';
            t.needs_gradient = is_result || t.is_parameter;
            program.tensors.push_back(t);
        }
        Use u{entry->second, {}, false};
        for (char c : axes) u.letters.push_back(static_cast<int>(all.find(c)));
        return u;
    }

    std::map<char, int64_t> sizes_;
    std::string batch_;
    std::map<std::string, int> names_;
};

inline Cluster small_cluster() {
    Cluster c;
    c.name = "test";
    c.levels = {{8, 5e-6, 90e9}, {1 << 20, 15e-6, 10e9}};
    c.collective_seconds = 20e-6;
    c.flops_per_second = 150e12, c.bytes_per_second = 800e9, c.operator_seconds = 3e-6;
    c.memory_bytes = 32e9;
    return c;
}

}  // namespace lunaria::parallel
