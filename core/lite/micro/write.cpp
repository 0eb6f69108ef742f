#include "core/lite/micro/write.h"

#include <algorithm>
#include <cstring>

#include "core/lite/micro/arena.h"
#include "core/lite/micro/board.h"
#include "core/lite/micro/pooled.h"
#include "core/lite/micro/program.h"

namespace lunaria::lite::micro {

namespace {

WriteStep find_kind(std::string_view name) {
    for (const std::span<const StepKind> kinds : {loop_kinds(), product_kinds(), integer_kinds(), pool_kinds(),
                                                  arrangement_kinds(), reduction_kinds(), element_kinds()})
        for (const StepKind& kind : kinds)
            if (kind.name == name) return kind.write;
    return nullptr;
}

int64_t elements_of(const Value& value) {
    int64_t count = 1;
    for (const Number& n : value.shape) count *= n.value;
    return count;
}
std::string shape_of(const Value& value) {
    std::string text;
    for (const Number& n : value.shape) text += text.empty() ? str(n.value) : str(" x ", n.value);
    return text.empty() ? "one number" : text;
}

template <class T>
T read(const std::byte* from, int64_t i) {
    T x;
    std::memcpy(&x, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return x;
}
std::string element(DType dtype, const std::byte* from, int64_t i) {
    switch (dtype) {
        case DType::f32:
            return literal(read<float>(from, i));
        case DType::f64:
            return literal(read<double>(from, i));
        case DType::i8:
            return literal(read<int8_t>(from, i), dtype);
        case DType::u8:
        case DType::boolean:
            return literal(read<uint8_t>(from, i), dtype);
        case DType::i16:
            return literal(read<int16_t>(from, i), dtype);
        case DType::u16:
            return literal(read<uint16_t>(from, i), dtype);
        case DType::i32:
            return literal(read<int32_t>(from, i), dtype);
        case DType::u32:
            return literal(read<uint32_t>(from, i), dtype);
        default:
            return literal(read<int64_t>(from, i), dtype);
    }
}

// `head` = { elements };
void write_array(Lines& to, const std::string& head, DType dtype, const std::byte* elements, int64_t count) {
    to.line(head, " = {");
    std::string line;
    for (int64_t i = 0; i < count; ++i) {
        const std::string next = element(dtype, elements, i);
        if (line.size() + next.size() > 112) {
            to.line("    ", line);
            line.clear();
        }
        line += line.empty() ? next : " " + next;
        line += i + 1 < count ? "," : "";
    }
    to.line("    ", line);
    to.line("};");
}

class Project {
  public:
    Project(const Model& model, std::span<const Sample> samples, const Options& options)
        : model_(model), samples_(samples), options_(options), program_(model) {}

    Written run() {
        check();
        for (uint32_t s = 0; s < model_.steps.size(); ++s) write_step(s);
        arena_ = plan_arena(model_);
        Written made;
        made.arena_bytes = arena_.bytes;
        made.live_bytes = arena_.live;
        for (const Array& a : program_.arrays()) made.weight_bytes += a.elements.size();
        const bool is_board = options_.target == Target::cortex_m;
        made.files = {{"net.h", header()},
                      {"net.c", source()},
                      {"weights.h", weights_header()},
                      {"weights.c", weights()},
                      {"test.c", test()},
                      {"Makefile", std::string(is_board ? kBoardMakefile : kMakefile)}};
        if (is_board) {
            made.files.push_back({"board.c", std::string(kBoardStart)});
            made.files.push_back({"board.ld", std::string(kBoardScript)});
        } else {
            made.files.push_back({"CMakeLists.txt", std::string(kCMake)});
        }
        return made;
    }

  private:
    void check() const {
        for (const Value& v : model_.values) {
            if (v.home == Value::Home::variable)
                throw value_error(
                    "lite.micro",
                    "a value that lives from run to run (a state or a weight in training) is not supported in C");
            if (v.home == Value::Home::constant) continue;
            if (type_name(v.dtype).empty())
                throw value_error("lite.micro", str(v.name.empty() ? "a value" : v.name, " has elements of ",
                                                    lunaria::name_of(v.dtype), ", which C99 does not have"));
            if (elements_of(v) <= 0 || elements_of(v) > INT32_MAX / 8)
                throw value_error("lite.micro",
                                  str(v.name.empty() ? "a value" : v.name, " has ", elements_of(v), " elements"));
        }
    }

    void write_step(uint32_t number) {
        const StepForm form(program_, number);
        const WriteStep write = find_kind(form.step.kind);
        if (!write) form.refuse(str("the operator ", form.step.kind, " is not supported in C"));
        std::string text = form.step.label.empty() ? form.step.kind : form.step.label;
        if (!form.step.node.empty()) text += " '" + form.step.node + "'";
        if (!form.step.source.empty()) text += " (" + form.step.source + ")";
        for (const Operand& o : form.out)
            if (o.is_there()) text += str(" -> ", shape_of(form.value(o)));
        program_.call_comment(text);
        write(form);
    }

    std::string parameters(bool names) const {
        std::string text;
        auto add = [&](uint32_t v, bool is_input) {
            const Value& value = model_.values[v];
            text += str(", ", is_input ? "const " : "", type_name(value.dtype), " ", names ? program_.name_of(v) : "",
                        "[", elements_of(value), "]");
        };
        for (const uint32_t v : model_.inputs) add(v, true);
        for (const uint32_t v : model_.outputs) add(v, false);
        return text;
    }
    std::string title() const { return options_.title.empty() ? "A network" : comment(options_.title); }

    std::string header() const {
        Lines to;
        to.line("/* ", title(), ", written by `lunaria lite micro`. */");
        to.raw(
            "#ifndef NET_H\n#define NET_H\n\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
            "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
        to.line(
            "/* The bytes of working memory that net_run() needs, all of which it uses, and the alignment of their "
            "first. */");
        to.line("#define NET_ARENA_BYTES ", arena_.bytes, "u");
        to.line("#define NET_ARENA_ALIGN ", arena_.align, "u");
        to.blank();
        for (const std::vector<uint32_t>* list : {&model_.inputs, &model_.outputs})
            for (const uint32_t v : *list)
                to.line("/* ", program_.name_of(v), ": ", type_name(model_.values[v].dtype), ", ",
                        shape_of(model_.values[v]), " */");
        to.line(
            "/* Computes the outputs. 0: done; 1: the arena is too small or not aligned; 2: an input holds an index "
            "out of range. */");
        to.line("int net_run(void *arena, size_t arena_bytes", parameters(true), ");");
        to.raw("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
        return to.take();
    }

    std::string source() const {
        Lines to;
        to.line("/* ", title(), ". Each step has a function of its own; equal ones share it. */");
        to.raw("#include \"net.h\"\n\n#include <math.h>\n#include <string.h>\n\n#include \"weights.h\"\n\n");
        to.raw(program_.helpers());
        to.raw(program_.functions());
        to.open("int net_run(void *arena, size_t arena_bytes", parameters(true), ")");
        if (arena_.bytes > 0) {
            to.line(
                "if (arena == NULL || arena_bytes < NET_ARENA_BYTES || (uintptr_t)arena % NET_ARENA_ALIGN != 0) return "
                "1;");
            to.line("unsigned char *const memory = (unsigned char *)arena;");
            for (size_t v = 0; v < model_.values.size(); ++v) {
                const Value& value = model_.values[v];
                if (value.home != Value::Home::arena || !is_used(static_cast<uint32_t>(v))) continue;
                const std::string_view type = type_name(value.dtype);
                to.line(type, " *const ", program_.name_of(static_cast<uint32_t>(v)), " = (", type,
                        " *)(void *)(memory + ", arena_.offsets[v], ");");
            }
        } else {
            to.line("(void)arena;");
            to.line("(void)arena_bytes;");
        }
        to.raw(program_.calls());
        for (const uint32_t v : model_.inputs)
            if (!is_used(v)) to.line("(void)", program_.name_of(v), ";");
        to.line("return 0;");
        to.close();
        return to.take();
    }
    bool is_used(uint32_t value) const {
        return std::ranges::any_of(model_.steps, [&](const Step& s) {
            auto is_it = [&](const View& v) { return v.value == value; };
            return std::ranges::any_of(s.operands, is_it) || std::ranges::any_of(s.results, is_it);
        });
    }

    static std::string declared(const Array& a) {
        return str("const ", type_name(a.dtype), " ", a.name, "[", a.count, "]");
    }
    std::string weights_header() const {
        Lines to;
        to.raw(
            "/* Constants of the network. */\n#ifndef NET_WEIGHTS_H\n#define NET_WEIGHTS_H\n\n#include "
            "<stdbool.h>\n#include <stdint.h>\n\n");
        for (const Array& a : program_.arrays())
            to.line("extern ", declared(a), a.comment.empty() ? ";" : str(";  /* ", comment(a.comment), " */"));
        to.raw("\n#endif\n");
        return to.take();
    }
    std::string weights() const {
        Lines to;
        to.raw(
            "/* Constants of the network. */\n#include \"weights.h\"\n\n#include <math.h>\n\n"
            "#if defined(__GNUC__)\n#define NET_ALIGNED __attribute__((aligned(16)))\n#else\n#define "
            "NET_ALIGNED\n#endif\n\n");
        if (program_.arrays().empty())
            to.raw("extern const int net_has_no_weights;\nconst int net_has_no_weights = 1;\n");
        for (const Array& a : program_.arrays()) {
            if (!a.comment.empty()) to.line("/* ", comment(a.comment), " */");
            write_array(to, declared(a) + " NET_ALIGNED", a.dtype, a.elements.data(), a.count);
            to.blank();
        }
        return to.take();
    }

    std::string test() const {
        Lines to;
        to.raw(
            "/* Runs the network on samples and compares its outputs with those of the model that it was written from. "
            "*/\n"
            "#include <math.h>\n#include <stdio.h>\n\n#include \"net.h\"\n\n");
        to.line("/* The largest difference of a float, relative to the largest number of the output. */");
        to.line("#ifndef TOLERANCE\n#define TOLERANCE ", literal(options_.tolerance), "\n#endif");
        to.raw(
            "#if defined(__GNUC__)\n#define NET_ALIGNED __attribute__((aligned(16)))\n#else\n#define "
            "NET_ALIGNED\n#endif\n");
        to.line("static unsigned char arena[NET_ARENA_BYTES + (NET_ARENA_BYTES == 0)] NET_ALIGNED;");
        to.line("static double worst;");
        to.blank();
        for (size_t s = 0; s < samples_.size(); ++s) {
            for (size_t i = 0; i < model_.inputs.size(); ++i)
                write_sample(to, s, model_.inputs[i], samples_[s].inputs[i]);
            for (size_t i = 0; i < model_.outputs.size(); ++i)
                write_sample(to, s, model_.outputs[i], samples_[s].outputs[i]);
        }
        write_comparisons(to);
        to.open("int main(void)");
        to.line("int wrong = 0;");
        for (const uint32_t v : model_.outputs)
            to.line("static ", type_name(model_.values[v].dtype), " ", program_.name_of(v), "[",
                    elements_of(model_.values[v]), "];");
        for (size_t s = 0; s < samples_.size(); ++s) write_run(to, s);
        if (samples_.empty()) to.line("(void)arena;");
        if (samples_.empty())
            for (const uint32_t v : model_.outputs) to.line("(void)", program_.name_of(v), ";");
        to.line("printf(wrong == 0 ? \"passed: %d samples, arena %u bytes, largest difference %.3g\\n\"");
        to.line("                  : \"failed: %d samples, arena %u bytes, largest difference %.3g\\n\", ",
                samples_.size(), ", NET_ARENA_BYTES, worst);");
        to.line("return wrong != 0;");
        to.close();
        return to.take();
    }
    std::string sample_name(size_t sample, uint32_t v) const { return str("sample", sample, "_", program_.name_of(v)); }
    void write_sample(Lines& to, size_t sample, uint32_t v, std::span<const std::byte> bytes) const {
        const Value& value = model_.values[v];
        const int64_t count = elements_of(value);
        if (bytes.size() != static_cast<size_t>(count) * size_of(value.dtype))
            throw value_error("lite.micro", str("a sample of ", program_.name_of(v), " has ", bytes.size(), " bytes; ",
                                                static_cast<size_t>(count) * size_of(value.dtype), " are expected"));
        write_array(to, str("static const ", type_name(value.dtype), " ", sample_name(sample, v), "[", count, "]"),
                    value.dtype, bytes.data(), count);
    }
    void write_comparisons(Lines& to) const {
        std::vector<DType> done;
        for (const uint32_t v : model_.outputs) {
            const DType t = model_.values[v].dtype;
            if (samples_.empty() || std::ranges::find(done, t) != done.end()) continue;
            done.push_back(t);
            const std::string_view type = type_name(t);
            to.blank();
            to.open("static int compare_", type, "(const char *name, const ", type, " *y, const ", type,
                    " *expected, int count)");
            const bool real = is_float(t);
            if (real) {
                to.line("double largest = 0, difference = 0;");
                to.open("for (int i = 0; i < count; ++i)");
                to.line("if (fabs((double)expected[i]) > largest) largest = fabs((double)expected[i]);");
                // Equal infinities and two NaN are no difference.
                to.line("if (y[i] == expected[i] || (y[i] != y[i] && expected[i] != expected[i])) continue;");
                to.line(
                    "if (!(fabs((double)y[i] - (double)expected[i]) <= difference)) difference = fabs((double)y[i] - "
                    "(double)expected[i]);");
                to.close();
                to.line("if (largest > 0) difference /= largest;");
            } else {
                to.line("double difference = 0;");
                to.line("for (int i = 0; i < count; ++i) difference += y[i] != expected[i];");
            }
            to.line("printf(\"%s:\", name);");
            to.line("for (int i = 0; i < count; ++i) printf(\" ",
                    real ? "%.9g\", (double)y[i]" : "%.0f\", (double)y[i]", ");");
            to.line("printf(\"\\n\");");
            to.line("if (!(difference <= worst)) worst = difference;");
            to.line("return !(difference <= ", real ? "TOLERANCE" : "0", ");");
            to.close();
        }
        to.blank();
    }
    void write_run(Lines& to, size_t sample) const {
        std::string arguments;
        for (const uint32_t v : model_.inputs) arguments += ", " + sample_name(sample, v);
        for (const uint32_t v : model_.outputs) arguments += str(", ", program_.name_of(v));
        if (arena_.bytes > 0)
            to.line("wrong += net_run(arena, NET_ARENA_BYTES - 1", arguments, ") != 1;  /* a byte too few */");
        to.line("wrong += net_run(arena, NET_ARENA_BYTES", arguments, ") != 0;");
        for (const uint32_t v : model_.outputs)
            to.line("wrong += compare_", type_name(model_.values[v].dtype), "(\"", program_.name_of(v), "\", ",
                    program_.name_of(v), ", ", sample_name(sample, v), ", ", elements_of(model_.values[v]), ");");
    }

    const Model& model_;
    const std::span<const Sample> samples_;
    const Options& options_;
    Program program_;
    Arena arena_;
};

}  // namespace

Written write_c(const Model& model, std::span<const Sample> samples, const Options& options) {
    const Model joined = join_pools(model);
    return Project(joined, samples, options).run();
}

}  // namespace lunaria::lite::micro
