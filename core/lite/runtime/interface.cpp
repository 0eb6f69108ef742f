// The C interface. Errors of the runtime are texts; what its containers may throw ends here.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/lite/format/secret.h"
#include "core/lite/runtime/interface.h"

namespace lite = lunaria::lite;

struct lunaria_lite_context {
    int threads = 1;
    lite::Affinity affinity = lite::Affinity::none;
    std::vector<int> cores;
    std::shared_ptr<lite::Threads> started;  // owned by the context and its models
};

struct lunaria_lite_group {
    std::shared_ptr<lite::Workspace> workspace = std::make_shared<lite::Workspace>();  // owned by the group's models
};

namespace lunaria::lite {

namespace {
thread_local std::string last_error;
}  // namespace

int fail(std::string text) {
    last_error = std::move(text);
    return -1;
}

}  // namespace lunaria::lite

namespace {

using lite::fail, lite::guarded, lite::last_error;

lunaria_lite_dtype c_dtype(lunaria::DType t) {
    using lunaria::DType;
    switch (t) {
        case DType::boolean:
            return LUNARIA_LITE_BOOL;
        case DType::u8:
            return LUNARIA_LITE_UINT8;
        case DType::i8:
            return LUNARIA_LITE_INT8;
        case DType::u16:
            return LUNARIA_LITE_UINT16;
        case DType::i16:
            return LUNARIA_LITE_INT16;
        case DType::u32:
            return LUNARIA_LITE_UINT32;
        case DType::i32:
            return LUNARIA_LITE_INT32;
        case DType::u64:
            return LUNARIA_LITE_UINT64;
        case DType::i64:
            return LUNARIA_LITE_INT64;
        case DType::f16:
            return LUNARIA_LITE_FLOAT16;
        case DType::bf16:
            return LUNARIA_LITE_BFLOAT16;
        case DType::f32:
            return LUNARIA_LITE_FLOAT32;
        case DType::f64:
            return LUNARIA_LITE_FLOAT64;
        default:
            return LUNARIA_LITE_OTHER;
    }
}

}  // namespace

namespace lunaria::lite {

void describe(const Executor& executor, uint32_t value, lunaria_lite_tensor& t) {
    const Value& v = executor.model().values[value];
    const std::vector<int64_t>& shape = executor.shape(value);
    t.name = v.name.c_str();
    t.dtype = c_dtype(v.dtype);
    t.rank = static_cast<int>(std::min<size_t>(shape.size(), LUNARIA_LITE_MAX_RANK));
    for (int i = 0; i < t.rank; ++i) t.shape[i] = shape[static_cast<size_t>(i)];
    t.bytes = executor.bytes(value);
}

// Tensors after a build or a resize: their data is memory of the model.
bool describe(lunaria_lite_model& m) {
    const Model& model = m.executor->model();
    m.inputs.resize(model.inputs.size());
    m.outputs.resize(model.outputs.size());
    m.given.assign(model.inputs.size(), nullptr);
    m.wanted.assign(model.outputs.size(), nullptr);
    m.shown.assign(model.outputs.size(), nullptr);
    for (size_t i = 0; i < m.inputs.size(); ++i) {
        describe(*m.executor, model.inputs[i], m.inputs[i]);
        m.inputs[i].data = m.executor->memory(model.inputs[i]);
        if (!m.inputs[i].data) return false;
    }
    for (size_t i = 0; i < m.outputs.size(); ++i) {
        describe(*m.executor, model.outputs[i], m.outputs[i]);
        m.outputs[i].data = nullptr;
    }
    return true;
}

}  // namespace lunaria::lite

namespace {

using lite::describe;

int build(lunaria_lite_model* model, std::span<const std::byte> file, lunaria_lite_context* context) {
    static thread_local lunaria_lite_context single;
    lunaria_lite_context& c = context ? *context : single;
    if (!c.started)
        c.started =
            std::make_shared<lite::Threads>(c.threads ? c.threads : lite::processor_count(), c.affinity, c.cores);
    std::string fault;
    const size_t file_bytes = file.size();
    if (lite::is_encrypted(file)) {
        lite::Fault damage;
        if (model->key.empty()) return fail("the file is encrypted: its key is missing");
        if (!lite::decrypt(file, model->key, model->plain, damage)) return fail(damage.message());
        file = model->plain.span();
    }
    auto workspace = model->workspace ? model->workspace : std::make_shared<lite::Workspace>();
    model->executor = lite::Executor::make(file, context ? c.started : std::exchange(c.started, nullptr),
                                           std::move(workspace), fault);
    if (!model->executor) return fail(fault);
    model->file_bytes = file_bytes;
    if (describe(*model)) return 0;
    model->executor.reset();
    return fail("there is not enough memory");
}

int check_built(const lunaria_lite_model* model) {
    return model && model->executor ? 0 : fail("the model is not built");
}

lunaria_lite_tensor* named(std::vector<lunaria_lite_tensor>& tensors, const char* name) {
    for (lunaria_lite_tensor& t : tensors)
        if (name && std::strcmp(t.name, name) == 0) return &t;
    fail(std::string("there is no tensor '") + (name ? name : "") + "'");
    return nullptr;
}

// The callbacks of a run.
struct Callbacks {
    const lite::Model* model = nullptr;
    lunaria_lite_callback *before = nullptr, *after = nullptr;
    void* user = nullptr;

    static bool call(lunaria_lite_callback* f, const Callbacks& c, size_t step) {
        const lite::Step& s = c.model->steps[step];
        const lunaria_lite_step info{step,   c.model->steps.size(), s.kind.c_str(), s.label.c_str(), s.node.c_str(),
                                     s.flops};
        return f(&info, c.user) == 0;
    }
};

}  // namespace

extern "C" {

const char* lunaria_lite_error(void) { return last_error.c_str(); }
const char* lunaria_lite_version(void) { return LUNARIA_LITE_VERSION; }

lunaria_lite_context* lunaria_lite_context_create(void) { return new (std::nothrow) lunaria_lite_context; }
void lunaria_lite_context_free(lunaria_lite_context* context) { delete context; }

int lunaria_lite_context_set_threads(lunaria_lite_context* context, int count) {
    if (!context || count < 0 || count > 1024) return fail("the number of threads is from 0 to 1024");
    context->threads = count;
    context->started.reset();
    return 0;
}
int lunaria_lite_context_set_affinity(lunaria_lite_context* context, lunaria_lite_affinity affinity) {
    if (!context || affinity < LUNARIA_LITE_NO_AFFINITY || affinity > LUNARIA_LITE_MIDDLE_CORES)
        return fail("there is no such affinity");
    context->affinity = static_cast<lite::Affinity>(affinity);
    context->started.reset();
    return 0;
}
int lunaria_lite_context_set_cores(lunaria_lite_context* context, const int* cores, size_t count) {
    return guarded([&] {
        if (!context || (count && !cores)) return fail("there are no cores");
        for (size_t i = 0; i < count; ++i)
            if (cores[i] < 0 || cores[i] >= 1024) return fail("a core is from 0 to 1023");
        context->cores.assign(cores, cores + count);
        context->started.reset();
        return 0;
    });
}

lunaria_lite_model* lunaria_lite_model_create(void) { return new (std::nothrow) lunaria_lite_model; }
void lunaria_lite_model_free(lunaria_lite_model* model) { delete model; }

int lunaria_lite_model_set_key(lunaria_lite_model* model, const void* key, size_t bytes) {
    return guarded([&] {
        if (!model || !key || (bytes != 16 && bytes != 24 && bytes != 32)) return fail("a key has 16, 24 or 32 bytes");
        model->key.assign(static_cast<const char*>(key), bytes);
        return 0;
    });
}
int lunaria_lite_model_build_from_file(lunaria_lite_model* model, const char* path, lunaria_lite_context* context) {
    return guarded([&] {
        if (!model || !path) return fail("there is no model or no path");
        if (model->executor) return fail("the model is built already");
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        struct stat about {};
        if (file < 0 || fstat(file, &about) != 0) {
            const std::string why = std::strerror(errno);
            if (file >= 0) close(file);
            return fail(std::string(path) + ": " + why);
        }
        const auto bytes = static_cast<size_t>(about.st_size);
        void* const mapped = bytes ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
        close(file);
        if (mapped == MAP_FAILED) return fail(std::string(path) + ": it is empty or cannot be mapped");
        model->mapped = mapped;
        model->mapped_bytes = bytes;
        if (build(model, {static_cast<const std::byte*>(mapped), bytes}, context) == 0) return 0;
        munmap(std::exchange(model->mapped, nullptr), bytes);
        return fail(std::string(path) + ": " + last_error);
    });
}
int lunaria_lite_model_build(lunaria_lite_model* model, const void* data, size_t bytes, lunaria_lite_context* context) {
    return guarded([&] {
        if (!model || !data) return fail("there is no model or no memory");
        if (model->executor) return fail("the model is built already");
        if (reinterpret_cast<uintptr_t>(data) % 64 != 0) {
            if (!model->copied.reserve(bytes)) return fail("there is not enough memory");
            std::memcpy(model->copied.data(), data, bytes);
            data = model->copied.data();
        }
        return build(model, {static_cast<const std::byte*>(data), bytes}, context);
    });
}

lunaria_lite_tensor* lunaria_lite_model_inputs(lunaria_lite_model* model, size_t* count) {
    if (check_built(model) != 0) return nullptr;
    if (count) *count = model->inputs.size();
    return model->inputs.data();
}
lunaria_lite_tensor* lunaria_lite_model_outputs(lunaria_lite_model* model, size_t* count) {
    if (check_built(model) != 0) return nullptr;
    if (count) *count = model->outputs.size();
    return model->outputs.data();
}
lunaria_lite_tensor* lunaria_lite_model_input_by_name(lunaria_lite_model* model, const char* name) {
    return check_built(model) == 0 ? named(model->inputs, name) : nullptr;
}
lunaria_lite_tensor* lunaria_lite_model_output_by_name(lunaria_lite_model* model, const char* name) {
    return check_built(model) == 0 ? named(model->outputs, name) : nullptr;
}

int lunaria_lite_model_resize(lunaria_lite_model* model, const lunaria_lite_tensor* shapes, size_t count) {
    return guarded([&] {
        if (check_built(model) != 0) return -1;
        if (count != model->inputs.size() || (count && !shapes))
            return fail("the model has " + std::to_string(model->inputs.size()) + " inputs");
        std::vector<std::vector<int64_t>> wanted;
        for (size_t i = 0; i < count; ++i) {
            if (shapes[i].rank < 0 || shapes[i].rank > LUNARIA_LITE_MAX_RANK) return fail("a shape has too many axes");
            wanted.emplace_back(shapes[i].shape, shapes[i].shape + shapes[i].rank);
        }
        std::string fault;
        if (!model->executor->resize(wanted, fault)) return fail(fault);
        return describe(*model) ? 0 : fail("there is not enough memory");
    });
}

int lunaria_lite_model_predict(lunaria_lite_model* model, lunaria_lite_callback* before, lunaria_lite_callback* after,
                               void* user) {
    return guarded([&] {
        if (check_built(model) != 0) return -1;
        lite::Executor& executor = *model->executor;
        for (size_t i = 0; i < model->inputs.size(); ++i) {
            if (!model->inputs[i].data) model->inputs[i].data = executor.memory(executor.model().inputs[i]);
            model->given[i] = model->inputs[i].data;
        }
        for (size_t i = 0; i < model->outputs.size(); ++i) {
            void* const set = model->outputs[i].data;
            model->wanted[i] = set == model->shown[i] ? nullptr : set;
        }
        Callbacks callbacks{&executor.model(), before, after, user};
        lite::Observer observer{nullptr, nullptr, &callbacks};
        if (before)
            observer.before = [](void* c, size_t step) {
                const auto& all = *static_cast<Callbacks*>(c);
                return Callbacks::call(all.before, all, step);
            };
        if (after)
            observer.after = [](void* c, size_t step) {
                const auto& all = *static_cast<Callbacks*>(c);
                return Callbacks::call(all.after, all, step);
            };
        std::string fault;
        if (!executor.run(model->given, model->wanted, observer, fault)) return fail(fault);
        for (size_t i = 0; i < model->outputs.size(); ++i) {
            if (model->wanted[i]) continue;
            model->shown[i] = const_cast<char*>(executor.address(executor.model().outputs[i]));
            model->outputs[i].data = model->shown[i];
        }
        return 0;
    });
}

int lunaria_lite_model_update_weights(lunaria_lite_model* model, const lunaria_lite_tensor* weights, size_t count) {
    return guarded([&] {
        if (check_built(model) != 0) return -1;
        std::string fault;
        for (size_t i = 0; i < count; ++i) {
            if (!weights[i].name || !weights[i].data) return fail("a weight has no name or no elements");
            if (!model->executor->update(weights[i].name, weights[i].data, weights[i].bytes, fault)) return fail(fault);
        }
        return 0;
    });
}
int lunaria_lite_model_weight(lunaria_lite_model* model, size_t number, lunaria_lite_tensor* weight) {
    if (check_built(model) != 0) return -1;
    const lite::Model& m = model->executor->model();
    for (uint32_t v = 0; v < m.values.size(); ++v) {
        const lite::Value& value = m.values[v];
        const bool is_weight = !value.name.empty() && value.is_stored();
        if (!is_weight || number-- > 0) continue;
        describe(*model->executor, v, *weight);
        weight->data = const_cast<char*>(model->executor->address(v));
        return 0;
    }
    return fail("there are no more weights");
}

int lunaria_lite_model_save(lunaria_lite_model* model, const char* path) {
    return guarded([&] {
        if (check_built(model) != 0) return -1;
        if (!path) return fail("there is no path");
        std::string fault;
        return model->executor->save(path, fault) ? 0 : fail(fault);
    });
}

int lunaria_lite_model_memory(const lunaria_lite_model* model, lunaria_lite_memory* memory) {
    if (check_built(model) != 0) return -1;
    const lite::Executor& e = *model->executor;
    *memory = {model->file_bytes, e.arena_bytes(), e.scratch_bytes(), e.own_bytes()};
    return 0;
}

lunaria_lite_group* lunaria_lite_group_create(void) { return new (std::nothrow) lunaria_lite_group; }
void lunaria_lite_group_free(lunaria_lite_group* group) { delete group; }
int lunaria_lite_group_add(lunaria_lite_group* group, lunaria_lite_model* model) {
    if (!group || !model) return fail("there is no group or no model");
    if (model->executor) return fail("the model is built already: add it before");
    model->workspace = group->workspace;
    return 0;
}

}  // extern "C"
