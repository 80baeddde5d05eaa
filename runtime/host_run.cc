#include "laneshift/host_run.h"

#include <utility>

#include "base/text.h"
#include "compiler/tma_reach.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

// From the first element to the last.
size_t BytesOf(const GemmProblem& problem, ir::Operand operand) {
  const compiler::StoredOperand s = compiler::Stored(problem, operand);
  const int64_t elements = (problem.batch - 1) * s.batch_stride + (s.outer - 1) * s.pitch + s.inner;
  return static_cast<size_t>(elements * DataTypeBytes(s.type));
}

Result<device::Buffer> Upload(const device::Stream& stream, const char* name, const void* from, size_t bytes) {
  if (bytes > 0 && from == nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("pointer ", name, " is null, but the problem needs ", name));
  }
  LS_ASSIGN(device::Buffer buffer, device::Buffer::Allocate(stream.context(), bytes));
  if (bytes > 0) LS_TRY(buffer.CopyFromHost(stream, from, bytes));
  return buffer;
}

}  // namespace

Status RunFromHost(const Engine& engine, const Problem& problem, const GemmArguments& host) {
  LS_ASSIGN(const Problem complete, CompleteProblem(problem));
  LS_ASSIGN(const Plan plan, engine.MakePlan(complete));
  const GemmProblem& p = std::get<GemmProblem>(complete);
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  const int64_t bias_length = p.bias == BiasAxis::kNone ? 0 : p.bias == BiasAxis::kM ? p.m : p.n;
  LS_ASSIGN(const device::Buffer a, Upload(stream, "a", host.a, BytesOf(p, ir::Operand::kA)));
  LS_ASSIGN(const device::Buffer b, Upload(stream, "b", host.b, BytesOf(p, ir::Operand::kB)));
  LS_ASSIGN(const device::Buffer c, Upload(stream, "c", host.c, p.beta == 0 ? 0 : BytesOf(p, ir::Operand::kC)));
  LS_ASSIGN(const device::Buffer d, Upload(stream, "d", host.d, BytesOf(p, ir::Operand::kD)));
  LS_ASSIGN(const device::Buffer bias,
            Upload(stream, "bias", host.bias, static_cast<size_t>(bias_length * DataTypeBytes(p.d))));
  const auto pointer = [](const device::Buffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
  LS_TRY(plan.Execute(stream.handle(),
                      {.a = pointer(a), .b = pointer(b), .c = pointer(c), .d = pointer(d), .bias = pointer(bias)}));
  LS_TRY(d.CopyToHost(stream, host.d, d.size()));
  return stream.Synchronize();
}

}  // namespace laneshift
