// The objects behind the C interface, and what its functions have in common.
#pragma once

#include <sys/mman.h>

#include <exception>
#include <new>

#include "core/lite/format/secret.h"
#include "core/lite/runtime/executor.h"
#include "core/lite/runtime/lunaria-lite.h"

struct lunaria_lite_model {
    ~lunaria_lite_model() {
        executor.reset();
        if (mapped) munmap(mapped, mapped_bytes);
    }

    std::shared_ptr<lunaria::lite::Workspace> workspace;  // of its group
    std::shared_ptr<lunaria::lite::Executor> executor;    // shared with a trainer
    void* mapped = nullptr;
    size_t mapped_bytes = 0, file_bytes = 0;
    lunaria::lite::Memory copied;
    std::string key;
    lunaria::lite::FileBytes plain;  // of an encrypted file
    std::vector<lunaria_lite_tensor> inputs, outputs;
    std::vector<const void*> given;  // memory of the caller
    std::vector<void*> wanted;
    std::vector<void*> shown;  // what the caller found in the outputs after the last run
};

namespace lunaria::lite {

// Keeps the text for lunaria_lite_error(); gives -1.
int fail(std::string text);

// Runs f, whose result is that of a C function.
template <class F>
int guarded(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        return fail("there is not enough memory");
    } catch (const std::exception& e) {
        return fail(e.what());
    }
}

void describe(const Executor& executor, uint32_t value, lunaria_lite_tensor& t);
// Tensors after a build or a resize: their data is memory of the model. False: there is not enough.
bool describe(lunaria_lite_model& m);

}  // namespace lunaria::lite
