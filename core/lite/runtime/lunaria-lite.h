/* Light models in programs of others: files that `lunaria lite convert` wrote, run without the rest of Lunaria.
 *
 * A context says how many threads compute and where; a model is built from a file or from memory and has input and
 * output tensors, which are filled and read between its runs. All memory is taken when a model is built or resized; a
 * run takes none.
 *
 * Functions return 0 when all went well and -1 otherwise; pointers are NULL then. A model must not be used by two
 * threads at once. Models of different contexts run at the same time; those of one context take turns with its threads.
 */
#ifndef LUNARIA_LITE_H
#define LUNARIA_LITE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LUNARIA_LITE_API __attribute__((visibility("default")))
#define LUNARIA_LITE_MAX_RANK 16

typedef enum {
    LUNARIA_LITE_BOOL, /* one byte, 0 or 1 */
    LUNARIA_LITE_UINT8,
    LUNARIA_LITE_INT8,
    LUNARIA_LITE_UINT16,
    LUNARIA_LITE_INT16,
    LUNARIA_LITE_UINT32,
    LUNARIA_LITE_INT32,
    LUNARIA_LITE_UINT64,
    LUNARIA_LITE_INT64,
    LUNARIA_LITE_FLOAT16,
    LUNARIA_LITE_BFLOAT16,
    LUNARIA_LITE_FLOAT32,
    LUNARIA_LITE_FLOAT64,
    LUNARIA_LITE_OTHER
} lunaria_lite_dtype;

typedef enum { LUNARIA_LITE_NO_AFFINITY, LUNARIA_LITE_BIG_CORES, LUNARIA_LITE_MIDDLE_CORES } lunaria_lite_affinity;

typedef struct lunaria_lite_context lunaria_lite_context;
typedef struct lunaria_lite_model lunaria_lite_model;
typedef struct lunaria_lite_group lunaria_lite_group;

/* Elements in row-major order. The name and the rest belong to the model. */
typedef struct {
    const char* name;
    lunaria_lite_dtype dtype;
    int rank;
    int64_t shape[LUNARIA_LITE_MAX_RANK];
    void* data;   /* of the model, or of the caller, where it was set */
    size_t bytes; /* of all elements */
} lunaria_lite_tensor;

/* What went wrong in the last call of this thread that failed; valid until its next call that fails. */
LUNARIA_LITE_API const char* lunaria_lite_error(void);
LUNARIA_LITE_API const char* lunaria_lite_version(void);

/* One thread, without affinity. What is set counts for the models that are built afterwards; a context may be freed
 * before them. */
LUNARIA_LITE_API lunaria_lite_context* lunaria_lite_context_create(void);
LUNARIA_LITE_API void lunaria_lite_context_free(lunaria_lite_context* context); /* NULL is fine */
/* The caller's thread included; 0: one for each processor. */
LUNARIA_LITE_API int lunaria_lite_context_set_threads(lunaria_lite_context* context, int count);
/* Binds the threads of the context, but for the caller's, to the fastest cores or to slower ones. */
LUNARIA_LITE_API int lunaria_lite_context_set_affinity(lunaria_lite_context* context, lunaria_lite_affinity affinity);
/* Binds them to these cores in turn, the first of which is left to the caller's. */
LUNARIA_LITE_API int lunaria_lite_context_set_cores(lunaria_lite_context* context, const int* cores, size_t count);

LUNARIA_LITE_API lunaria_lite_model* lunaria_lite_model_create(void);
LUNARIA_LITE_API void lunaria_lite_model_free(lunaria_lite_model* model); /* NULL is fine */
/* The key of an encrypted file: 16, 24 or 32 bytes. Such a file is decrypted in memory, where it stays. */
LUNARIA_LITE_API int lunaria_lite_model_set_key(lunaria_lite_model* model, const void* key, size_t bytes);
/* A model is built once. The file is mapped; its weights are read where they are. context: NULL is one thread. */
LUNARIA_LITE_API int lunaria_lite_model_build_from_file(lunaria_lite_model* model, const char* path,
                                                        lunaria_lite_context* context);
/* The memory has to live as long as the model where it begins at a multiple of 64; otherwise it is copied. */
LUNARIA_LITE_API int lunaria_lite_model_build(lunaria_lite_model* model, const void* data, size_t bytes,
                                              lunaria_lite_context* context);

/* The tensors, which stay at their places; shapes and sizes change with a resize. Data of inputs is memory of the model
 * until the caller sets it to memory of its own; set to NULL it is memory of the model again. Data of outputs is valid
 * after a run and until the next one; where it is set to memory of the caller before, the elements are written there.
 */
LUNARIA_LITE_API lunaria_lite_tensor* lunaria_lite_model_inputs(lunaria_lite_model* model, size_t* count);
LUNARIA_LITE_API lunaria_lite_tensor* lunaria_lite_model_outputs(lunaria_lite_model* model, size_t* count);
/* NULL where there is none of this name. */
LUNARIA_LITE_API lunaria_lite_tensor* lunaria_lite_model_input_by_name(lunaria_lite_model* model, const char* name);
LUNARIA_LITE_API lunaria_lite_tensor* lunaria_lite_model_output_by_name(lunaria_lite_model* model, const char* name);

/* New shapes for all inputs, in their order: rank and shape of `shapes` count. */
LUNARIA_LITE_API int lunaria_lite_model_resize(lunaria_lite_model* model, const lunaria_lite_tensor* shapes,
                                               size_t count);

/* A step of a run, for callbacks. */
typedef struct {
    size_t index, count;
    const char *kind, *operators; /* of the kernel, and the operators that it computes */
    const char* node;             /* the first of them in the model that was converted, or an empty text */
    double flops;
} lunaria_lite_step;
/* Called before or after each step; a result other than 0 ends the run with an error. */
typedef int lunaria_lite_callback(const lunaria_lite_step* step, void* user);
LUNARIA_LITE_API int lunaria_lite_model_predict(lunaria_lite_model* model, lunaria_lite_callback* before,
                                                lunaria_lite_callback* after, void* user);

/* Sets weights by their names: data and bytes of each count, and the bytes must be those of the weight as the file
 * holds it. The file stays as it is. */
LUNARIA_LITE_API int lunaria_lite_model_update_weights(lunaria_lite_model* model, const lunaria_lite_tensor* weights,
                                                       size_t count);
/* The weight with this number, as lunaria_lite_model_update_weights takes it; its data is that of the model. -1: there
 * are no more. */
LUNARIA_LITE_API int lunaria_lite_model_weight(lunaria_lite_model* model, size_t number, lunaria_lite_tensor* weight);

/* Writes the model with its present weights and states to a file, which is complete under its name or not there. */
LUNARIA_LITE_API int lunaria_lite_model_save(lunaria_lite_model* model, const char* path);

typedef struct {
    size_t file;    /* bytes of the mapped file */
    size_t arena;   /* of temporaries, exact */
    size_t scratch; /* of kernels */
    size_t own;     /* of results, states and inputs that are memory of the model */
} lunaria_lite_memory;
LUNARIA_LITE_API int lunaria_lite_model_memory(const lunaria_lite_model* model, lunaria_lite_memory* memory);

/* Models that never run at the same time and share their temporaries: add them before they are built. The group may be
 * freed before them. */
LUNARIA_LITE_API lunaria_lite_group* lunaria_lite_group_create(void);
LUNARIA_LITE_API void lunaria_lite_group_free(lunaria_lite_group* group); /* NULL is fine */
LUNARIA_LITE_API int lunaria_lite_group_add(lunaria_lite_group* group, lunaria_lite_model* model);

/* Training on the device, with files that ms.lite.convert_training wrote. A step computes the loss and the gradients of
 * one batch, of the size that the file was made for, and lets the optimizer of the file change the weights. */
typedef struct lunaria_lite_trainer lunaria_lite_trainer;
LUNARIA_LITE_API lunaria_lite_trainer* lunaria_lite_trainer_create(void);
LUNARIA_LITE_API void lunaria_lite_trainer_free(lunaria_lite_trainer* trainer); /* NULL is fine */
LUNARIA_LITE_API int lunaria_lite_trainer_set_key(lunaria_lite_trainer* trainer, const void* key, size_t bytes);
/* Transfer learning: a built model that stays as it is. Its outputs are the first inputs of the network that is
 * trained; the trainer's inputs are then those of the backbone and what follows, such as labels. It has to outlive the
 * trainer. To be set before the trainer is built. */
LUNARIA_LITE_API int lunaria_lite_trainer_set_backbone(lunaria_lite_trainer* trainer, lunaria_lite_model* backbone);
LUNARIA_LITE_API int lunaria_lite_trainer_build_from_file(lunaria_lite_trainer* trainer, const char* path,
                                                          lunaria_lite_context* context);
/* As those of a model: to be filled before each step, or set to memory of the caller. */
LUNARIA_LITE_API lunaria_lite_tensor* lunaria_lite_trainer_inputs(lunaria_lite_trainer* trainer, size_t* count);
/* loss: of this batch before the step; NULL is fine. */
LUNARIA_LITE_API int lunaria_lite_trainer_step(lunaria_lite_trainer* trainer, float* loss);
/* The loss alone: nothing changes. */
LUNARIA_LITE_API int lunaria_lite_trainer_loss(lunaria_lite_trainer* trainer, float* loss);
/* Counts from the next step on; at first it is that of the file. */
LUNARIA_LITE_API int lunaria_lite_trainer_set_learning_rate(lunaria_lite_trainer* trainer, double rate);
LUNARIA_LITE_API double lunaria_lite_trainer_learning_rate(const lunaria_lite_trainer* trainer);
/* The optimizer steps once for so many batches, with the mean of their gradients. */
LUNARIA_LITE_API int lunaria_lite_trainer_set_virtual_batch(lunaria_lite_trainer* trainer, int batches);
/* The factor of the loss, by which gradients are divided again: for files that compute in 16 bits. A batch whose
 * gradients are not finite changes nothing. patience: the scale is halved then, and doubled after so many batches
 * without; 0 keeps it. */
LUNARIA_LITE_API int lunaria_lite_trainer_set_loss_scale(lunaria_lite_trainer* trainer, float scale, int patience);
LUNARIA_LITE_API float lunaria_lite_trainer_loss_scale(const lunaria_lite_trainer* trainer);
/* Of the optimizer, with those before the file was saved. */
LUNARIA_LITE_API int64_t lunaria_lite_trainer_steps(const lunaria_lite_trainer* trainer);
/* The model that trains, for its weights and memory; it belongs to the trainer. */
LUNARIA_LITE_API lunaria_lite_model* lunaria_lite_trainer_model(lunaria_lite_trainer* trainer);
/* The network as it predicts, with the weights of this moment; call it again after further steps. It belongs to the
 * trainer. */
LUNARIA_LITE_API lunaria_lite_model* lunaria_lite_trainer_predictor(lunaria_lite_trainer* trainer);
/* Writes what training goes on from, or the network as it predicts, for lunaria_lite_model_build_from_file. The file is
 * complete under its name or not there. */
LUNARIA_LITE_API int lunaria_lite_trainer_save(lunaria_lite_trainer* trainer, const char* path);
LUNARIA_LITE_API int lunaria_lite_trainer_export(lunaria_lite_trainer* trainer, const char* path);

#ifdef __cplusplus
}
#endif

#endif
