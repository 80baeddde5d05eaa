// laneshift for C and for other languages' foreign-function interfaces: open, plan, execute.
//
// Every call that can fail returns LANESHIFT_OK or the kind of failure, and writes one line of text into `error`
// (cut to `error_bytes`, always terminated, with '?' for control characters and bytes that are no UTF-8; null is
// allowed). A null engine, plan or other pointer where one is needed is LANESHIFT_INVALID_ARGUMENT, and so is an
// engine, a plan or memory that was given back, unless a later one has its address; functions without a status ignore
// it, or return "" or 0. No call throws; if the host is out of memory it is LANESHIFT_RESOURCE_EXHAUSTED. Thread-safety
// as laneshift/engine.h: engines and plans may be shared; a plan keeps its engine's device alive. Nothing may be given
// back while another thread is in a call with it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct laneshift_engine laneshift_engine;
typedef struct laneshift_plan laneshift_plan;
typedef struct laneshift_memory laneshift_memory;
struct CUstream_st;

typedef enum {
  LANESHIFT_OK = 0,
  LANESHIFT_INVALID_ARGUMENT = 1,
  LANESHIFT_UNSUPPORTED = 2,
  LANESHIFT_RESOURCE_EXHAUSTED = 3,
  LANESHIFT_NOT_FOUND = 4,
  LANESHIFT_CORRUPT = 5,
  LANESHIFT_DRIVER = 6,
  LANESHIFT_TIMEOUT = 7,
  LANESHIFT_WRONG_RESULT = 8,
  LANESHIFT_INTERNAL = 9
} laneshift_status;

/* Null or empty strings mean the defaults of laneshift::EngineOptions; the store directory ":memory:" means none. */
laneshift_status laneshift_engine_open(const char* device, const char* target, const char* store_directory,
                                       laneshift_engine** engine, char* error, size_t error_bytes);

/* The same with all options. Set `struct_bytes` to sizeof(laneshift_options) and zero the rest: null and zero mean the
   default. Later versions only add members at the end, so programs and libraries of different versions are compatible:
   members that the caller's struct lacks have their defaults, and those that this library does not know must be zero
   (otherwise LANESHIFT_INVALID_ARGUMENT). */
typedef struct laneshift_options {
  size_t struct_bytes;
  const char* device;
  const char* target;
  const char* store_directory;
  const char* system_store;
  const char* on_miss;             /* "heuristic", "tune", "background" or "error" */
  const char* tuner;               /* path of the program laneshift; null: on PATH, or where it was installed */
  const char* include_directories; /* of the sources of users' functions; separated by ':' */
  size_t functions_in_process; /* 1: without the program laneshift they are compiled in this process, without limits */
} laneshift_options;
laneshift_status laneshift_engine_open_with(const laneshift_options* options, laneshift_engine** engine, char* error,
                                            size_t error_bytes);
/* Makes the plans of all problems beforehand, so that they are found at once and during a capture. */
laneshift_status laneshift_engine_prepare(laneshift_engine* engine, const char* const* problems, size_t count,
                                          char* error, size_t error_bytes);
/* Waits until nothing is left to measure in the background. */
void laneshift_engine_finish_tuning(laneshift_engine* engine);
/* The report of all launches on the emulator since the last call: `faults` and `hazards` receive the counts, `report`
   the text (truncated to `report_bytes`, always terminated), in lines that begin with "fault: ", "hazard: ",
   "policy: " or "output: ". Each of the three may be null. LANESHIFT_UNSUPPORTED on a GPU. */
laneshift_status laneshift_engine_take_report(laneshift_engine* engine, size_t* faults, size_t* hazards, char* report,
                                              size_t report_bytes, char* error, size_t error_bytes);
void laneshift_engine_close(laneshift_engine* engine);

/* Compiles a user's epilogue function (laneshift/epilogue_function.h), or finds it in the store, and writes the step
   that calls it, for the epilogue= of a problem: "Swish@…/column.f32,number:1.5". `file` is the source's name in
   messages, or null; `numbers` are the values of its numeric parameters. For a gated linear unit with the split gate/up
   layout, append ":halves" to the step. LANESHIFT_INVALID_ARGUMENT if `step_bytes` is too small. A problem may also
   name the file itself: epilogue=act.cu:Swish:1.5. */
laneshift_status laneshift_step_make(laneshift_engine* engine, const char* source, const char* file,
                                     const char* function, const double* numbers, size_t count, char* step,
                                     size_t step_bytes, char* error, size_t error_bytes);

/* `problem` in its one-line form; `schedule` a complete or partial schedule, or null. */
laneshift_status laneshift_plan_make(laneshift_engine* engine, const char* problem, const char* schedule,
                                     laneshift_plan** plan, char* error, size_t error_bytes);
/* The schedule that the plan uses; where its kernel came from: "memory", "store" or "compiled"; and why it is this one:
   "rule", "prior", "predicted", "stale", "measured" or "given". Valid as long as the plan. */
const char* laneshift_plan_schedule(const laneshift_plan* plan);
const char* laneshift_plan_cache(const laneshift_plan* plan);
const char* laneshift_plan_choice(const laneshift_plan* plan);
size_t laneshift_plan_workspace_bytes(const laneshift_plan* plan);
void laneshift_plan_free(laneshift_plan* plan);

/* Enqueues d = alpha * a b + beta * c + bias on `stream` (a CUstream or cudaStream_t; null: the default stream). For a
   convolution the operands are, in the same order, x, w, z, y and the bias; for the gradient of x they are y, w, z and
   x, for the gradient of w they are y, x, z and w. */
laneshift_status laneshift_plan_execute(const laneshift_plan* plan, struct CUstream_st* stream, const void* a,
                                        const void* b, const void* c, void* d, const void* bias, void* workspace,
                                        char* error, size_t error_bytes);

/* The same for a problem with scale factors (scale=tensor or scale=block): device pointers to f32 values, laid out as
   in laneshift/problem.h. scale_d is read if D is 8-bit. */
laneshift_status laneshift_plan_execute_scaled(const laneshift_plan* plan, struct CUstream_st* stream, const void* a,
                                               const void* b, const void* c, void* d, const void* bias,
                                               const void* scale_a, const void* scale_b, const void* scale_d,
                                               void* workspace, char* error, size_t error_bytes);
/* The same for a problem with an epilogue: `epilogue` has `count` addresses, those of its operands in the order of the
   steps that have one. The scale factors are null if the problem has none. */
laneshift_status laneshift_plan_execute_fused(const laneshift_plan* plan, struct CUstream_st* stream, const void* a,
                                              const void* b, const void* c, void* d, const void* bias,
                                              const void* scale_a, const void* scale_b, const void* scale_d,
                                              void* const* epilogue, size_t count, void* workspace, char* error,
                                              size_t error_bytes);

/* The same by a structure, for all kinds of problem: fields that the problem has no use for are null. Set
   `struct_bytes` to sizeof(laneshift_arguments). For a convolution a, b, c and d are x, w, z and y,
   for the gradient of x y, w, z and x, and for that of w y, x, z and w. The
   tensor_scale fields are the f32 factors of whole operands of scale=nv. Of a grouped GEMM `group_offsets` has groups +
   1 integers of 32 bits, the rows at which groups begin and that at which the last one ends; with layout=masked
   `group_sizes` has instead the rows of each group; with rows=gather and scatter `a_row_indices` and `d_row_indices`
   have as many integers as the product has rows. `block_scale_d` gets the scale factors of the blocks of D
   (d_scale=mx or nv). */
typedef struct laneshift_arguments {
  size_t struct_bytes;
  const void* a;
  const void* b;
  const void* c;
  void* d;
  const void* bias;
  const void* scale_a;
  const void* scale_b;
  const void* scale_d;
  const void* tensor_scale_a;
  const void* tensor_scale_b;
  void* const* epilogue; /* `epilogue_count` addresses */
  size_t epilogue_count;
  void* workspace;
  const void* group_offsets;
  const void* group_sizes;
  void* block_scale_d;
  const void* metadata_a; /* of a sparse A */
  const void* a_row_indices;
  const void* d_row_indices;
} laneshift_arguments;
laneshift_status laneshift_plan_execute_arguments(const laneshift_plan* plan, struct CUstream_st* stream,
                                                  const laneshift_arguments* arguments, char* error,
                                                  size_t error_bytes);

/* For a problem with sparse=a (laneshift/sparsity.h): the bytes of the stored elements of A, of its metadata and of the
   dense A. Each result may be null. */
laneshift_status laneshift_sparse_bytes(const char* problem, size_t* elements_bytes, size_t* metadata_bytes,
                                        size_t* dense_bytes, char* error, size_t error_bytes);
/* Host memory of these sizes. Compress: LANESHIFT_INVALID_ARGUMENT names the first row and group of `dense` that is not
   2:4 sparse. Expand is the inverse. */
laneshift_status laneshift_sparse_compress(const char* problem, const void* dense, void* elements, void* metadata,
                                           char* error, size_t error_bytes);
laneshift_status laneshift_sparse_expand(const char* problem, const void* elements, const void* metadata, void* dense,
                                         char* error, size_t error_bytes);

/* Memory of the engine's device, initially zero, for programs that do not use a CUDA driver or runtime themselves; on
   the emulator it is the only way. `bytes` may be 0: the address is then null, which Execute accepts as no workspace.
   Free it before or after the engine. */
laneshift_status laneshift_memory_allocate(laneshift_engine* engine, size_t bytes, laneshift_memory** memory,
                                           char* error, size_t error_bytes);
void* laneshift_memory_address(const laneshift_memory* memory);
/* Copies `bytes` bytes from or to host memory, after all work on the default stream, and waits. */
laneshift_status laneshift_memory_write(const laneshift_memory* memory, size_t offset, const void* from, size_t bytes,
                                        char* error, size_t error_bytes);
laneshift_status laneshift_memory_read(const laneshift_memory* memory, size_t offset, void* to, size_t bytes,
                                       char* error, size_t error_bytes);
void laneshift_memory_free(laneshift_memory* memory);

/* Tensors in narrow types with scale factors of blocks, on the host: laneshift/quantize.h. Set `struct_bytes` to
   sizeof(laneshift_quantized). `type` is "e4m3", "e5m2" or "e2m1", `scaling` "mx" or "nv"; `scale` is 1, or with nv the
   f32 by which numbers are multiplied. Numbers are of type "f32", "f16" or "bf16". */
typedef struct laneshift_quantized {
  size_t struct_bytes;
  int64_t batch, rows, columns;
  const char* type;
  const char* scaling;
  float scale;
} laneshift_quantized;
laneshift_status laneshift_quantized_bytes(const laneshift_quantized* tensor, size_t* elements, size_t* factors,
                                           char* error, size_t error_bytes);
laneshift_status laneshift_quantize(const laneshift_quantized* tensor, const char* from_type, const void* from,
                                    void* elements, void* factors, char* error, size_t error_bytes);
laneshift_status laneshift_dequantize(const laneshift_quantized* tensor, const void* elements, const void* factors,
                                      const char* to_type, void* to, char* error, size_t error_bytes);

/* The same in device memory, as one kernel on `stream` (a CUstream or cudaStream_t; null: the default stream). Pointers
   are device addresses, `factors` aligned to 16 bytes; `scale` is that of one f32 with nv and null otherwise, and the
   member of the tensor is not used. */
laneshift_status laneshift_enqueue_quantize(laneshift_engine* engine, struct CUstream_st* stream,
                                            const laneshift_quantized* tensor, const char* from_type, const void* from,
                                            const float* scale, void* elements, void* factors, char* error,
                                            size_t error_bytes);
laneshift_status laneshift_enqueue_dequantize(laneshift_engine* engine, struct CUstream_st* stream,
                                              const laneshift_quantized* tensor, const void* elements,
                                              const void* factors, const float* scale, const char* to_type, void* to,
                                              char* error, size_t error_bytes);

#ifdef __cplusplus
}
#endif
