// Stamps: the clock at an op, for kernels that are timed. No branch, so that products in flight stay in flight.
#include <cstddef>

#include "compiler/emit/emit_role.h"
#include "ir/stamp_buffer.h"

namespace laneshift::compiler {

using ir::Op;
using ir::StampBuffer;
using ir::StampEvent;
using ir::StampHeader;

void RoleEmitter::Stamp(const Op& op) {
  const auto& attrs = op.As<ir::StampAttrs>();
  if (attrs.event == StampEvent::kBegin) return BeginStamps();
  if (attrs.event == StampEvent::kEnd) return EndStamps();
  Value* position = e_.Load(*stamps_);
  Value* room = b_.CreateICmpNE(b_.CreateAnd(position, e_.C32(StampBuffer::kWarpBytes - 1)), e_.C32(0));
  e_.StoreGlobal(StampAddress(position, 0), {e_.Clock(), e_.C32(static_cast<uint32_t>(attrs.id))}, room);
  Value* next = b_.CreateAdd(position, e_.C32(sizeof(ir::StampRecord)));
  e_.Store(*stamps_, b_.CreateSelect(room, next, position));
}

Value* RoleEmitter::StampAddress(Value* position, size_t offset) {
  return b_.CreateAdd(cx_.Param(ir::Binding::kStamps), b_.CreateAdd(b_.CreateZExt(position, e_.I64()), e_.C64(offset)));
}

// One thread of each warp records, in the CTAs of the first cluster.
void RoleEmitter::BeginStamps() {
  stamps_ = e_.NewVariable(e_.I32(), e_.C32(0));
  Value* records = b_.CreateICmpULT(e_.CtaIndex(), e_.C32(static_cast<uint32_t>(cx_.program.ClusterSize())));
  if (!role_.elected) records = b_.CreateAnd(records, b_.CreateICmpEQ(cx_.lane, e_.C32(0)));
  Value* warps = e_.C32(static_cast<uint32_t>(cx_.program.threads / kWarpThreads));
  Value* warp = b_.CreateAdd(e_.C32(static_cast<uint32_t>(cx_.first_warp)), cx_.warp);
  Value* region = b_.CreateMul(b_.CreateAdd(b_.CreateMul(e_.CtaIndex(), warps), warp), e_.C32(StampBuffer::kWarpBytes));
  StoreStampTime(records, region, offsetof(StampHeader, begin_ns), offsetof(StampHeader, begin_clock));
  Value* first = b_.CreateAdd(region, e_.C32(StampBuffer::kHeaderBytes));
  e_.Store(*stamps_, b_.CreateSelect(records, first, e_.C32(0)));
}

void RoleEmitter::EndStamps() {
  Value* position = e_.Load(*stamps_);
  Value* records = b_.CreateICmpNE(position, e_.C32(0));
  // The last record may have filled the region, whose end is the start of the next.
  Value* inside = b_.CreateSub(position, e_.C32(1));
  Value* region = b_.CreateAnd(inside, e_.C32(~static_cast<uint32_t>(StampBuffer::kWarpBytes - 1)));
  StoreStampTime(records, region, offsetof(StampHeader, end_ns), offsetof(StampHeader, end_clock));
  e_.StoreGlobal(StampAddress(region, offsetof(StampHeader, records_end)), {position}, records);
}

void RoleEmitter::StoreStampTime(Value* records, Value* region, size_t time_offset, size_t clock_offset) {
  Value* time = e_.GlobalTimer();
  Value* clock = e_.Clock();
  Value* high = b_.CreateTrunc(b_.CreateLShr(time, 32), e_.I32());
  e_.StoreGlobal(StampAddress(region, time_offset), {b_.CreateTrunc(time, e_.I32()), high}, records);
  e_.StoreGlobal(StampAddress(region, clock_offset), {clock}, records);
}

}  // namespace laneshift::compiler
