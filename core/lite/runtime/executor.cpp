#include "core/lite/runtime/executor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/lite/format/arena.h"
#include "core/lite/format/check.h"
#include "core/lite/format/sizes.h"

namespace lunaria::lite {

namespace {

std::string place_of(size_t number, const Step& step) {
    std::string place = "step " + std::to_string(number) + " (" + step.kind;
    if (!step.label.empty() && step.label != step.kind) place += ", " + step.label;
    if (!step.node.empty()) place += ", node " + step.node;
    if (!step.source.empty()) place += ", " + step.source;
    return place + ")";
}

void run_on_threads(void* pool, int64_t count, kernels::Workers::Task task, void* closure) {
    static_cast<Threads*>(pool)->run(count, task, closure);
}

bool stopped(size_t step, std::string& fault) {
    fault = "the run was stopped at step " + std::to_string(step);
    return false;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = step;
        step *= shape[i];
    }
    return strides;
}

}  // namespace

bool write_file(const Model& model, const std::string& path, std::string& fault) {
    const std::string part = path + ".part";
    const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        fault = part + ": " + std::strerror(errno);
        return false;
    }
    fault = write_model(model, [&](std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::write(file, bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return false;
            bytes = bytes.subspan(static_cast<size_t>(count));
        }
        return true;
    });
    const bool good = fault.empty() && fsync(file) == 0;
    const std::string why = std::strerror(errno);
    close(file);
    if (good && std::rename(part.c_str(), path.c_str()) == 0) return true;
    std::remove(part.c_str());
    if (fault.empty()) fault = path + ": " + why;
    return false;
}

bool Memory::reserve(size_t bytes) {
    if (bytes <= size_) return true;
    std::free(data_);
    size_ = 0;
    bytes = (bytes + 63) / 64 * 64;
    data_ = static_cast<char*>(std::aligned_alloc(64, bytes));
    if (data_) size_ = bytes;
    return data_ != nullptr;
}
Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
Memory& Memory::operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}
Memory::~Memory() { std::free(data_); }

std::unique_ptr<Executor> Executor::make(std::span<const std::byte> file, std::shared_ptr<Threads> threads,
                                         std::shared_ptr<Workspace> workspace, std::string& fault) {
    std::unique_ptr<Executor> made(new Executor);
    Fault damage;
    // Larger weights are not read before they are used.
    constexpr size_t kChecked = 8 << 20;
    if (!read_model(file, made->model_, damage, {.checks_weights = file.size() <= kChecked})) {
        fault = damage.message();
        return nullptr;
    }
    made->threads_ = std::move(threads);
    made->workspace_ = std::move(workspace);
    made->own_.resize(made->model_.values.size());
    Layout layout;
    if (!made->lay_out(sizes_of(made->model_), layout, fault)) return nullptr;
    if (!made->take(std::move(layout), fault)) return nullptr;
    return made;
}

bool Executor::resize(std::span<const std::vector<int64_t>> shapes, std::string& fault) {
    std::vector<int64_t> dimensions;
    fault = find_sizes(model_, shapes, dimensions);
    if (!fault.empty()) return false;
    if (dimensions == dimensions_) return true;
    if (const ModelFault wrong = check_sizes(model_, dimensions); !wrong.text.empty()) {
        fault = wrong.step == kNone ? wrong.text : place_of(wrong.step, model_.steps[wrong.step]) + ": " + wrong.text;
        return false;
    }
    Layout layout;
    return lay_out(std::move(dimensions), layout, fault) && take(std::move(layout), fault);
}

bool Executor::lay_out(std::vector<int64_t> dimensions, Layout& layout, std::string& fault) const {
    layout.dimensions = std::move(dimensions);
    std::vector<uint64_t> sizes;
    for (const Value& v : model_.values) {
        std::vector<int64_t> shape;
        const bool good = evaluate(model_, v.shape, layout.dimensions, shape);
        const auto bytes = good ? bytes_of(v.dtype, v.form, shape) : std::nullopt;
        if (!bytes) {
            fault = "a value has no size";
            return false;
        }
        sizes.push_back(*bytes);
        layout.bytes.push_back(static_cast<size_t>(*bytes));
        layout.shapes.push_back(std::move(shape));
    }
    Placement placement = place_arena(model_, sizes);
    layout.offsets = std::move(placement.offsets);
    layout.arena = placement.bytes;
    for (size_t s = 0; s < model_.steps.size(); ++s) {
        const Step& step = model_.steps[s];
        ReadyStep ready;
        if (!prepare(step, layout, ready, layout.scratch, fault)) {
            fault = place_of(s, step) + ": " + fault;
            return false;
        }
        layout.most_operands = std::max(layout.most_operands, ready.in.size() + ready.out.size());
        layout.steps.push_back(std::move(ready));
    }
    return true;
}

bool Executor::operand_of(const View& view, const Layout& layout, Operand& o) const {
    o = {};
    if (view.value == kNone) return true;
    const Value& v = model_.values[view.value];
    o.value = view.value;
    o.dtype = v.dtype;
    o.form = v.form;
    o.constant = v.home == Value::Home::constant ? v.data : nullptr;
    if (view.whole) {
        o.shape = layout.shapes[view.value];
        o.strides = dense_strides(o.shape);
        return true;
    }
    const auto offset = evaluate(model_, view.offset, layout.dimensions);
    if (!offset || !evaluate(model_, view.shape, layout.dimensions, o.shape) ||
        !evaluate(model_, view.strides, layout.dimensions, o.strides))
        return false;
    o.offset = *offset * static_cast<int64_t>(size_of(o.dtype));
    if (o.constant) o.constant += o.offset;
    return o.form == Form::plain && o.shape.size() == o.strides.size();
}

bool Executor::prepare(const Step& step, const Layout& layout, ReadyStep& ready, size_t& scratch,
                       std::string& fault) const {
    for (const auto& [views, values, places] :
         {std::tuple{&step.operands, &ready.in, &ready.in_at}, std::tuple{&step.results, &ready.out, &ready.out_at}})
        for (const View& view : *views) {
            values->push_back(view.value);
            const auto offset = view.whole || view.value == kNone ? std::optional<int64_t>(0)
                                                                  : evaluate(model_, view.offset, layout.dimensions);
            if (!offset) {
                fault = "an operand has no place";
                return false;
            }
            places->push_back(
                view.value == kNone ? 0 : *offset * static_cast<int64_t>(size_of(model_.values[view.value].dtype)));
        }
    if (step.loop != kNone) {
        if (!prepare_loop(step, layout, ready, fault)) return false;
        scratch = std::max(scratch, (ready.loop->scratch + 63) / 64 * 64 * static_cast<size_t>(ready.parts));
        return true;
    }
    const Prepare make = find_kind(step.kind);
    if (!make) {
        fault = "this runtime has no such step";
        return false;
    }
    StepForm form{step, model_, layout.dimensions, kernels::best_isa(), threads_->count()};
    for (const auto& [views, operands] : {std::pair{&step.operands, &form.in}, std::pair{&step.results, &form.out}})
        for (const View& view : *views)
            if (!operand_of(view, layout, operands->emplace_back())) {
                fault = "an operand has no form";
                return false;
            }
    ready.work = make(form, fault);
    if (!ready.work) return false;
    scratch = std::max(scratch, static_cast<size_t>(ready.work->scratch));
    return true;
}

bool Executor::prepare_loop(const Step& step, const Layout& layout, ReadyStep& ready, std::string& fault) const {
    graph::LoopProgram program = model_.loops[step.loop].program;
    std::vector<int64_t> sizes;
    if (!evaluate(model_, step.sizes, layout.dimensions, sizes)) {
        fault = "it has no sizes";
        return false;
    }
    for (const Patch& patch : step.patches)
        if (const auto value = evaluate(model_, patch.value, layout.dimensions))
            apply(patch, *value, program.code[patch.instruction]);
    ready.loop = make_loop(program, sizes, fault);
    if (!ready.loop) return false;
    for (const graph::LoopOperand& o : program.operands) ready.written.push_back(o.written);
    ready.parts = parts_of(*ready.loop, threads_->count());
    return true;
}

bool Executor::take(Layout layout, std::string& fault) {
    const std::lock_guard lock(workspace_->turn);
    workspace_->arena_bytes = std::max(workspace_->arena_bytes, layout.arena);
    workspace_->scratch_bytes = std::max(workspace_->scratch_bytes, layout.scratch);
    bool enough = workspace_->arena.reserve(workspace_->arena_bytes + 64) &&
                  workspace_->scratch.reserve(workspace_->scratch_bytes + 64);
    addresses_.assign(model_.values.size(), nullptr);
    for (uint32_t v = 0; v < model_.values.size() && enough; ++v) {
        const Value& value = model_.values[v];
        if (value.home == Value::Home::constant && own_[v].data() == nullptr) {
            addresses_[v] = reinterpret_cast<const char*>(value.data);
        } else if (value.home == Value::Home::variable && own_[v].data() == nullptr) {
            enough = own_[v].reserve(std::max<size_t>(layout.bytes[v], 1));
            if (!enough) break;
            if (value.bytes)
                std::memcpy(own_[v].data(), value.data, std::min<size_t>(value.bytes, layout.bytes[v]));
            else
                std::memset(own_[v].data(), 0, layout.bytes[v]);
        }
        if (value.home == Value::Home::output) enough = enough && own_[v].reserve(std::max<size_t>(layout.bytes[v], 1));
        if (value.home != Value::Home::arena && own_[v].data()) addresses_[v] = own_[v].data();
    }
    if (!enough) {
        fault = "there is not enough memory";
        return false;
    }
    dimensions_ = std::move(layout.dimensions);
    shapes_ = std::move(layout.shapes);
    bytes_ = std::move(layout.bytes);
    offsets_ = std::move(layout.offsets);
    steps_ = std::move(layout.steps);
    placement_bytes_ = layout.arena;
    scratch_bytes_ = layout.scratch;
    pointers_.assign(layout.most_operands, nullptr);
    return true;
}

void* Executor::memory(uint32_t value) {
    const char* const before = own_[value].data();
    if (!own_[value].reserve(std::max<size_t>(bytes_[value], 1))) return nullptr;
    if (own_[value].data() != before) std::memset(own_[value].data(), 0, own_[value].size());
    return own_[value].data();
}

size_t Executor::own_bytes() const {
    size_t bytes = 0;
    for (const Memory& m : own_) bytes += m.size();
    return bytes;
}

bool Executor::run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer& observer,
                   std::string& fault) {
    const std::scoped_lock lock(threads_->turn, workspace_->turn);
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
        const uint32_t v = model_.inputs[i];
        const void* const given = i < inputs.size() ? inputs[i] : nullptr;
        addresses_[v] = given ? static_cast<const char*>(given) : own_[v].data();
        if (!addresses_[v]) {
            fault = "input " + std::to_string(i) + " has no elements";
            return false;
        }
    }
    for (uint32_t v = 0; v < model_.values.size(); ++v)
        if (model_.values[v].home == Value::Home::arena) addresses_[v] = workspace_->arena.data() + offsets_[v];
    for (size_t i = 0; i < model_.outputs.size(); ++i) {
        const uint32_t v = model_.outputs[i];
        if (model_.values[v].home != Value::Home::output) continue;
        addresses_[v] = i < outputs.size() && outputs[i] ? static_cast<const char*>(outputs[i]) : own_[v].data();
    }
    const kernels::Workers workers = this->workers();
    std::atomic<const char*> wrong{nullptr};
    for (size_t s = 0; s < steps_.size(); ++s) {
        if (observer.before && !observer.before(observer.context, s)) return stopped(s, fault);
        run_step(steps_[s], workers, wrong);
        if (const char* text = wrong.load(std::memory_order_relaxed)) {
            fault = place_of(s, model_.steps[s]) + ": " + text;
            return false;
        }
        if (observer.after && !observer.after(observer.context, s)) return stopped(s, fault);
    }
    // An output that is no memory of its own: an input, a constant, a value that is given twice.
    for (size_t i = 0; i < model_.outputs.size(); ++i) {
        const uint32_t v = model_.outputs[i];
        if (i < outputs.size() && outputs[i] && addresses_[v] != outputs[i])
            std::memcpy(outputs[i], addresses_[v], bytes_[v]);
    }
    return true;
}

kernels::Workers Executor::workers() const {
    return {threads_->count() > 1 ? run_on_threads : nullptr, threads_.get(), threads_->count()};
}

void Executor::run_step(const ReadyStep& step, const kernels::Workers& workers, std::atomic<const char*>& fault) {
    auto place = [&](uint32_t value, int64_t at) {
        return value == kNone ? nullptr : const_cast<char*>(addresses_[value]) + at;
    };
    char** const pointers = pointers_.data();
    if (step.loop) {
        size_t read = 0, written = 0;
        for (size_t k = 0; k < step.written.size(); ++k) {
            const bool result = step.written[k] != 0;
            const size_t i = result ? written++ : read++;
            pointers[k] = result ? place(step.out[i], step.out_at[i]) : place(step.in[i], step.in_at[i]);
        }
        const size_t room = (step.loop->scratch + 63) / 64 * 64;
        char* const scratch = workspace_->scratch.data();
        auto* const operands = reinterpret_cast<void* const*>(pointers);
        if (step.parts == 1) return run_loop(*step.loop, operands, part_of(*step.loop, 1, 0), scratch);
        return threads_->run(step.parts, [&](int64_t part, int) {
            run_loop(*step.loop, operands, part_of(*step.loop, step.parts, static_cast<int>(part)),
                     scratch + static_cast<size_t>(part) * room);
        });
    }
    for (size_t i = 0; i < step.in.size(); ++i) pointers[i] = place(step.in[i], step.in_at[i]);
    for (size_t i = 0; i < step.out.size(); ++i) pointers[step.in.size() + i] = place(step.out[i], step.out_at[i]);
    step.work->run({pointers, pointers + step.in.size(), workspace_->scratch.data(), workers, fault});
}

bool Executor::update(std::string_view name, const void* data, size_t bytes, std::string& fault) {
    for (uint32_t v = 0; v < model_.values.size(); ++v) {
        const Value& value = model_.values[v];
        if (value.name != name || !value.is_stored()) continue;
        if (bytes != bytes_[v]) {
            fault =
                "'" + std::string(name) + "' has " + std::to_string(bytes_[v]) + " bytes, not " + std::to_string(bytes);
            return false;
        }
        if (!own_[v].reserve(std::max<size_t>(bytes, 1))) {
            fault = "there is not enough memory";
            return false;
        }
        std::memcpy(own_[v].data(), data, bytes);
        addresses_[v] = own_[v].data();
        return true;
    }
    fault = "there is no weight '" + std::string(name) + "'";
    return false;
}

bool Executor::save(const std::string& path, std::string& fault) const {
    Model present = model_;
    for (uint32_t v = 0; v < present.values.size(); ++v) {
        Value& value = present.values[v];
        if (!value.is_stored() || !own_[v].data()) continue;
        value.data = reinterpret_cast<const std::byte*>(own_[v].data());
        value.bytes = bytes_[v];
    }
    return write_file(present, path, fault);
}

}  // namespace lunaria::lite
