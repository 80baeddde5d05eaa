// laneshift for C and for other languages' foreign-function interfaces: open, plan, execute.
//
// Every call that can fail returns LANESHIFT_OK or the kind of failure, and writes one line of text into `error`
// (cut to `error_bytes`, always terminated; null is allowed). No call throws. Thread-safety as laneshift/engine.h:
// engines and plans may be shared; a plan keeps its engine's device alive.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct laneshift_engine laneshift_engine;
typedef struct laneshift_plan laneshift_plan;
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

/* Null or empty strings mean the defaults of laneshift::EngineOptions. */
laneshift_status laneshift_engine_open(const char* device, const char* target, const char* store_directory,
                                       laneshift_engine** engine, char* error, size_t error_bytes);
void laneshift_engine_close(laneshift_engine* engine);

/* `problem` in its one-line form; `schedule` a whole or partial schedule, or null. */
laneshift_status laneshift_plan_make(laneshift_engine* engine, const char* problem, const char* schedule,
                                     laneshift_plan** plan, char* error, size_t error_bytes);
/* The schedule that the plan uses, and "memory", "store" or "compiled"; valid as long as the plan. */
const char* laneshift_plan_schedule(const laneshift_plan* plan);
const char* laneshift_plan_cache(const laneshift_plan* plan);
size_t laneshift_plan_workspace_bytes(const laneshift_plan* plan);
void laneshift_plan_free(laneshift_plan* plan);

/* Enqueues d = alpha * a b + beta * c + bias on `stream` (a CUstream or cudaStream_t; null: the default stream). For a
   convolution the operands are, in the same places, x, w, z, y and the bias. */
laneshift_status laneshift_plan_execute(const laneshift_plan* plan, struct CUstream_st* stream, const void* a,
                                        const void* b, const void* c, void* d, const void* bias, void* workspace,
                                        char* error, size_t error_bytes);

/* The same for a problem with an epilogue: `epilogue` has `count` addresses, those of its operands in the order of the
   steps that have one. */
laneshift_status laneshift_plan_execute_fused(const laneshift_plan* plan, struct CUstream_st* stream, const void* a,
                                              const void* b, const void* c, void* d, const void* bias,
                                              void* const* epilogue, size_t count, void* workspace, char* error,
                                              size_t error_bytes);

#ifdef __cplusplus
}
#endif
