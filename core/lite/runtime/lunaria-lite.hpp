// Light models for C++: owners of what lunaria-lite.h makes. Functions that may fail return whether all went well;
// error() says what did not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lunaria-lite.h"

namespace lunaria_lite {

inline std::string error() { return lunaria_lite_error(); }

// A tensor of a model: a reference to it.
class Tensor {
  public:
    explicit Tensor(lunaria_lite_tensor& tensor) : tensor_(&tensor) {}

    const char* name() const { return tensor_->name; }
    lunaria_lite_dtype dtype() const { return tensor_->dtype; }
    std::vector<std::int64_t> shape() const { return {tensor_->shape, tensor_->shape + tensor_->rank}; }
    std::size_t bytes() const { return tensor_->bytes; }
    template <class T>
    T* data() const {
        return static_cast<T*>(tensor_->data);
    }
    template <class T>
    std::size_t size() const {
        return tensor_->bytes / sizeof(T);
    }
    // Memory of the caller instead of the model's; null gives it back.
    void set_data(void* data) { tensor_->data = data; }

  private:
    lunaria_lite_tensor* tensor_;
};

class Context {
  public:
    bool set_threads(int count) { return lunaria_lite_context_set_threads(get(), count) == 0; }
    bool set_affinity(lunaria_lite_affinity affinity) {
        return lunaria_lite_context_set_affinity(get(), affinity) == 0;
    }
    bool set_cores(const std::vector<int>& cores) {
        return lunaria_lite_context_set_cores(get(), cores.data(), cores.size()) == 0;
    }
    lunaria_lite_context* get() const { return context_.get(); }

  private:
    struct Free {
        void operator()(lunaria_lite_context* c) const { lunaria_lite_context_free(c); }
    };
    std::unique_ptr<lunaria_lite_context, Free> context_{lunaria_lite_context_create()};
};

class Model {
  public:
    bool set_key(const std::string& key) { return lunaria_lite_model_set_key(get(), key.data(), key.size()) == 0; }
    bool build(const std::string& path, const Context& context = {}) {
        return lunaria_lite_model_build_from_file(get(), path.c_str(), context.get()) == 0;
    }
    bool build(const void* data, std::size_t bytes, const Context& context = {}) {
        return lunaria_lite_model_build(get(), data, bytes, context.get()) == 0;
    }
    std::vector<Tensor> inputs() const { return all(lunaria_lite_model_inputs); }
    std::vector<Tensor> outputs() const { return all(lunaria_lite_model_outputs); }
    bool resize(const std::vector<std::vector<std::int64_t>>& shapes) {
        std::vector<lunaria_lite_tensor> list;
        for (const std::vector<std::int64_t>& shape : shapes) {
            lunaria_lite_tensor t{};
            t.rank = static_cast<int>(shape.size());
            for (std::size_t i = 0; i < shape.size() && i < LUNARIA_LITE_MAX_RANK; ++i) t.shape[i] = shape[i];
            list.push_back(t);
        }
        return lunaria_lite_model_resize(get(), list.data(), list.size()) == 0;
    }
    bool predict(lunaria_lite_callback* before = nullptr, lunaria_lite_callback* after = nullptr,
                 void* user = nullptr) {
        return lunaria_lite_model_predict(get(), before, after, user) == 0;
    }
    bool update_weights(const std::vector<lunaria_lite_tensor>& weights) {
        return lunaria_lite_model_update_weights(get(), weights.data(), weights.size()) == 0;
    }
    bool save(const std::string& path) { return lunaria_lite_model_save(get(), path.c_str()) == 0; }
    lunaria_lite_memory memory() const {
        lunaria_lite_memory m{};
        lunaria_lite_model_memory(get(), &m);
        return m;
    }
    lunaria_lite_model* get() const { return model_.get(); }

  private:
    std::vector<Tensor> all(lunaria_lite_tensor* (*tensors)(lunaria_lite_model*, std::size_t*)) const {
        std::size_t count = 0;
        lunaria_lite_tensor* const first = tensors(get(), &count);
        std::vector<Tensor> list;
        for (std::size_t i = 0; first && i < count; ++i) list.emplace_back(first[i]);
        return list;
    }
    struct Free {
        void operator()(lunaria_lite_model* m) const { lunaria_lite_model_free(m); }
    };
    std::unique_ptr<lunaria_lite_model, Free> model_{lunaria_lite_model_create()};
};

// Models that share their temporaries.
class ModelGroup {
  public:
    bool add(const Model& model) { return lunaria_lite_group_add(group_.get(), model.get()) == 0; }

  private:
    struct Free {
        void operator()(lunaria_lite_group* g) const { lunaria_lite_group_free(g); }
    };
    std::unique_ptr<lunaria_lite_group, Free> group_{lunaria_lite_group_create()};
};

// Training on the device; see lunaria_lite_trainer.
class Trainer {
  public:
    bool set_key(const std::string& key) { return lunaria_lite_trainer_set_key(get(), key.data(), key.size()) == 0; }
    bool set_backbone(const Model& backbone) { return lunaria_lite_trainer_set_backbone(get(), backbone.get()) == 0; }
    bool build(const std::string& path, const Context& context = {}) {
        return lunaria_lite_trainer_build_from_file(get(), path.c_str(), context.get()) == 0;
    }
    std::vector<Tensor> inputs() const {
        std::size_t count = 0;
        lunaria_lite_tensor* const first = lunaria_lite_trainer_inputs(get(), &count);
        std::vector<Tensor> list;
        for (std::size_t i = 0; first && i < count; ++i) list.emplace_back(first[i]);
        return list;
    }
    bool step(float& loss) { return lunaria_lite_trainer_step(get(), &loss) == 0; }
    bool loss(float& loss) { return lunaria_lite_trainer_loss(get(), &loss) == 0; }
    bool set_learning_rate(double rate) { return lunaria_lite_trainer_set_learning_rate(get(), rate) == 0; }
    double learning_rate() const { return lunaria_lite_trainer_learning_rate(get()); }
    bool set_virtual_batch(int batches) { return lunaria_lite_trainer_set_virtual_batch(get(), batches) == 0; }
    bool set_loss_scale(float scale, int patience = 1000) {
        return lunaria_lite_trainer_set_loss_scale(get(), scale, patience) == 0;
    }
    float loss_scale() const { return lunaria_lite_trainer_loss_scale(get()); }
    std::int64_t steps() const { return lunaria_lite_trainer_steps(get()); }
    bool save(const std::string& path) { return lunaria_lite_trainer_save(get(), path.c_str()) == 0; }
    bool export_model(const std::string& path) { return lunaria_lite_trainer_export(get(), path.c_str()) == 0; }
    lunaria_lite_trainer* get() const { return trainer_.get(); }

  private:
    struct Free {
        void operator()(lunaria_lite_trainer* t) const { lunaria_lite_trainer_free(t); }
    };
    std::unique_ptr<lunaria_lite_trainer, Free> trainer_{lunaria_lite_trainer_create()};
};

}  // namespace lunaria_lite
