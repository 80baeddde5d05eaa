/* The same in plain C: a product on the emulator, and the errors that c.h promises. */
#include <laneshift/c.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { kM = 16, kN = 32, kK = 64 };

static char error[4096];

/* Says what went wrong, and where. */
static int Failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, error);
  return 1;
}

struct Memories {
  laneshift_memory *a, *b, *d, *workspace;
};

static int Allocate(laneshift_engine* engine, const laneshift_plan* plan, struct Memories* memories) {
  return laneshift_memory_allocate(engine, kM * kK * 2, &memories->a, error, sizeof error) ||
         laneshift_memory_allocate(engine, kN * kK * 2, &memories->b, error, sizeof error) ||
         laneshift_memory_allocate(engine, kM * kN * 4, &memories->d, error, sizeof error) ||
         laneshift_memory_allocate(engine, laneshift_plan_workspace_bytes(plan), &memories->workspace, error,
                                   sizeof error);
}

static int Multiply(const laneshift_plan* plan, const struct Memories* memories) {
  static uint16_t a[kM * kK], b[kN * kK];
  static float d[kM * kN];
  int i;
  for (i = 0; i < kM * kK; ++i) a[i] = 0x3f80; /* 1.0 in bf16 */
  for (i = 0; i < kN * kK; ++i) b[i] = 0x3f00; /* 0.5 */
  if (laneshift_memory_write(memories->a, 0, a, sizeof a, error, sizeof error)) return Failed("write a");
  if (laneshift_memory_write(memories->b, 0, b, sizeof b, error, sizeof error)) return Failed("write b");
  if (laneshift_plan_execute(plan, NULL, laneshift_memory_address(memories->a), laneshift_memory_address(memories->b),
                             NULL, laneshift_memory_address(memories->d), NULL,
                             laneshift_memory_address(memories->workspace), error, sizeof error))
    return Failed("execute");
  if (laneshift_memory_read(memories->d, 0, d, sizeof d, error, sizeof error)) return Failed("read d");
  for (i = 0; i < kM * kN; ++i) {
    if (d[i] != 0.5f * kK) return Failed("the product is wrong");
  }
  return 0;
}

/* A pointer that is no device address, a problem whose D is larger than the memory, a wrong problem. */
static int ExpectRefusals(laneshift_engine* engine, const laneshift_plan* plan, const struct Memories* memories) {
  static uint16_t host[kM * kK];
  laneshift_plan* wrong = NULL;
  laneshift_status status =
      laneshift_plan_execute(plan, NULL, host, laneshift_memory_address(memories->b), NULL,
                             laneshift_memory_address(memories->d), NULL,
                             laneshift_memory_address(memories->workspace), error, sizeof error);
  if (status != LANESHIFT_INVALID_ARGUMENT || strstr(error, "pointer a") == NULL) return Failed("a host pointer");
  if (laneshift_plan_make(engine, "gemm m=64 n=64 k=64 a=bf16 b=bf16 d=f32", NULL, &wrong, error, sizeof error))
    return Failed("a second plan");
  status = laneshift_plan_execute(wrong, NULL, laneshift_memory_address(memories->a),
                                  laneshift_memory_address(memories->b), NULL, laneshift_memory_address(memories->d),
                                  NULL, laneshift_memory_address(memories->workspace), error, sizeof error);
  laneshift_plan_free(wrong);
  if (status == LANESHIFT_OK) return Failed("memory that is too small was taken");
  if (laneshift_plan_make(engine, "gemm m=16 n=32 k=64 lda=8", NULL, &wrong, error, sizeof error) !=
      LANESHIFT_INVALID_ARGUMENT)
    return Failed("a pitch below the row was taken");
  return 0;
}

int main(void) {
  laneshift_engine* engine = NULL;
  laneshift_plan* plan = NULL;
  struct Memories memories = {NULL, NULL, NULL, NULL};
  int failed;
  if (laneshift_engine_open("emulator", NULL, ":memory:", &engine, error, sizeof error)) return Failed("open");
  if (laneshift_plan_make(engine, "gemm m=16 n=32 k=64 a=bf16 b=bf16 d=f32", NULL, &plan, error, sizeof error))
    return Failed("plan");
  if (Allocate(engine, plan, &memories)) return Failed("allocate");
  failed = Multiply(plan, &memories) || ExpectRefusals(engine, plan, &memories) ||
           Multiply(plan, &memories); /* the engine works on after a refusal */
  laneshift_memory_free(memories.a);
  laneshift_memory_free(memories.b);
  laneshift_memory_free(memories.d);
  laneshift_memory_free(memories.workspace);
  laneshift_plan_free(plan);
  laneshift_engine_close(engine);
  return failed;
}
