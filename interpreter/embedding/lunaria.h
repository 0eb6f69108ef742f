/* Saved programs (MindIR and ONNX files) in programs of others.
 *
 * All functions may be called from any thread. The library computes on one thread of its own, with as many helpers as
 * the machine has processors (LUNARIA_NUM_THREADS says otherwise): calls from several threads take turns. A program
 * must not be used by one thread while another one frees it. Nothing of the caller's is kept after a call: elements are
 * copied in and out, texts are copied. */
#ifndef LUNARIA_H
#define LUNARIA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LUNARIA_API __attribute__((visibility("default")))
#define LUNARIA_MAX_RANK 16

typedef enum {
    LUNARIA_UNKNOWN, /* the program does not say */
    LUNARIA_BOOL,    /* one byte, 0 or 1 */
    LUNARIA_UINT8,
    LUNARIA_INT8,
    LUNARIA_INT16,
    LUNARIA_INT32,
    LUNARIA_INT64,
    LUNARIA_FLOAT16,
    LUNARIA_BFLOAT16,
    LUNARIA_FLOAT32,
    LUNARIA_FLOAT64,
    LUNARIA_UINT16,
    LUNARIA_UINT32,
    LUNARIA_UINT64,
    LUNARIA_COMPLEX64, /* two floats, real and imaginary part */
    LUNARIA_COMPLEX128,
    LUNARIA_FLOAT8_E4M3FN,
    LUNARIA_FLOAT8_E5M2,
    LUNARIA_QINT4X2 /* two integers of 4 bits */
} lunaria_dtype;

typedef struct lunaria_program lunaria_program;

/* What the program says of an input or an output. The name lives as long as the program. */
typedef struct {
    const char* name;
    lunaria_dtype dtype;
    int rank;                        /* -1: the program does not say */
    int64_t shape[LUNARIA_MAX_RANK]; /* -1: not fixed */
} lunaria_info;

/* Elements in row-major order. */
typedef struct {
    lunaria_dtype dtype;
    int rank;
    int64_t shape[LUNARIA_MAX_RANK];
    void* data;
    size_t bytes; /* at data */
} lunaria_tensor;

/* The program in a file, to be freed; NULL when there is an error. */
LUNARIA_API lunaria_program* lunaria_load(const char* path);
LUNARIA_API void lunaria_free(lunaria_program* program); /* NULL is fine */

/* What went wrong in the last call of this thread that failed; valid until its next call that fails. */
LUNARIA_API const char* lunaria_error(void);

LUNARIA_API size_t lunaria_input_count(const lunaria_program* program);
LUNARIA_API size_t lunaria_output_count(const lunaria_program* program);
/* 0 if all went well, -1 when there is no such input or output. */
LUNARIA_API int lunaria_input(const lunaria_program* program, size_t index, lunaria_info* info);
LUNARIA_API int lunaria_output(const lunaria_program* program, size_t index, lunaria_info* info);

/* Runs the program on `input_count` inputs and gives `output_count` outputs, of which there may be fewer than the
 * program has. dtype, rank and shape of an output are set. Where its `data` is not NULL, the elements are written
 * there, and it is an error when `bytes` are too few; where it is NULL, data and bytes are set to elements that belong
 * to the program, until it runs again or is freed. 0 if all went well, -1 otherwise. */
LUNARIA_API int lunaria_run(lunaria_program* program, const lunaria_tensor* inputs, size_t input_count,
                            lunaria_tensor* outputs, size_t output_count);

/* A function that ms.op{ library = "FILE", symbol = "NAME" } makes an operator of: it reads the inputs and writes all
 * elements of the outputs, whose dtype, shape and memory are given. The dtype is the same for all; it may be any that
 * the caller's tensors have, but float16 and bfloat16, which come as float32. Called by several threads, at once too. 0
 * if all went well; otherwise it may write what is wrong to `message`, `size` bytes with the zero at the end. A
 * gradient is such a function of the inputs, the output and its cotangent, whose outputs are the cotangents of the
 * inputs. */
typedef int lunaria_operator(const lunaria_tensor* inputs, size_t input_count, lunaria_tensor* outputs,
                             size_t output_count, char* message, size_t size);

#ifdef __cplusplus
}
#endif

#endif
