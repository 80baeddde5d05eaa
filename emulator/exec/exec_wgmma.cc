// wgmma, ldmatrix, stmatrix.

#include <array>
#include <bit>

#include "base/text.h"
#include "emulator/decode/async_registers.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/lanes.h"
#include "emulator/exec/store_races.h"
#include "emulator/machine/access.h"
#include "emulator/units/wgmma.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// modifiers of mma_async: n, k, types, flags.
enum : uint64_t {
  kNegateA = uint64_t{1} << 40,
  kNegateB = uint64_t{1} << 41,
  kTransposeA = uint64_t{1} << 42,
  kTransposeB = uint64_t{1} << 43,
  kSaturate = uint64_t{1} << 44,
  kSparse = uint64_t{1} << 45
};

WgmmaRequest RequestOf(Warp& w, const Instruction& i, int lane) {
  WgmmaRequest request;
  request.n = static_cast<int>(i.modifiers & 0x1ff);
  request.k = static_cast<int>(i.modifiers >> 9 & 0x1ff);
  request.a = static_cast<ElementType>(i.modifiers >> 20 & 0xf);
  request.b = static_cast<ElementType>(i.modifiers >> 24 & 0xf);
  request.d = static_cast<AccumulatorType>(i.modifiers >> 28 & 0xf);
  if (i[1].count == 0) request.a_descriptor = w.Value(i[1], lane);
  request.b_descriptor = w.Value(i[2], lane);
  if (i.modifiers & kSparse) request.selector = static_cast<int>(i[4].offset);
  request.accumulate = w.Predicate(i[i.modifiers & kSparse ? 5 : 3]) >> lane & 1;
  request.negate_a = i.modifiers & kNegateA;
  request.negate_b = i.modifiers & kNegateB;
  request.transpose_a = i.modifiers & kTransposeA;
  request.transpose_b = i.modifiers & kTransposeB;
  request.saturate = i.modifiers & kSaturate;
  return request;
}

// A wgmma.fence must follow ordinary accesses of its registers.
void CheckFence(Warp& member, const Instruction& i) {
  bool unfenced = !member.fenced_wgmma;
  for (size_t operand = 0; operand < 2; ++operand) {
    for (uint32_t r = 0; r < i[operand].count; ++r)
      unfenced = unfenced || member.unfenced[i[operand].elements[r].slot >> 7];
  }
  if (!unfenced) return;
  member.Report(HazardKind::kMissingWgmmaFence, -1,
                member.fenced_wgmma ? "a register of this wgmma was accessed since the warp's last wgmma.fence"
                                    : "the warp has executed no wgmma.fence before its first wgmma");
}

// `first`: of the warpgroup's warps.
bool Execute(const PlannedWgmma& plan, const Instruction& i, size_t first, Cta& cta, AsyncOp& self) {
  Cluster& cluster = cta.cluster();
  OperandBuffers& buffers = cluster.host().operands;
  std::vector<uint32_t*>& d = buffers.rows_d;
  d.clear();
  std::array<const uint32_t*, 16> a;
  std::array<const uint32_t*, 4> metadata;
  for (size_t q = 0; q < 4; ++q) {
    Warp& member = *cta.warps[first + q];
    for (uint32_t r = 0; r < i[0].count; ++r) d.push_back(member.At<uint32_t>(i[0].elements[r]));
    for (uint32_t r = 0; r < i[1].count; ++r) a[4 * q + r] = member.At<uint32_t>(i[1].elements[r]);
    if (i.modifiers & kSparse) metadata[q] = member.At<uint32_t>(i[3]);
  }
  const auto done =
      ExecuteWgmma(plan, cluster.machine().arithmetic, cta.shared().Window(), std::span(a).first(4 * i[1].count), d,
                   std::span(metadata).first(i.modifiers & kSparse ? 4 : 0), buffers);
  if (!done.has_value()) cluster.SetFault({FaultKind::kIllegalInstruction, PlaceOf(self), done.error().message});
  return done.has_value();
}

Outcome IssueWgmma(Warp& w, const Instruction& i, uint32_t mask) {
  Cta& cta = w.cta();
  Cluster& cluster = cta.cluster();
  const int lane = std::countr_zero(mask);
  const WgmmaRequest request = RequestOf(w, i, lane);
  const uint64_t key = PlanKey({request.b_descriptor, request.a_descriptor.value_or(0), request.accumulate});
  auto planned =
      cluster.host().kept().wgmma_plans.Find(request, key, [&] { return PlanWgmma(request, cta.shared().Window()); });
  if (!planned.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, planned.error().message);
  std::shared_ptr<const PlannedWgmma> plan = std::move(*planned);
  if (i[0].count != static_cast<uint32_t>(plan->d_registers)) {
    return w.Fault(FaultKind::kIllegalInstruction, lane,
                   Cat("D has ", plan->d_registers, " registers, not ", i[0].count));
  }
  const size_t first = static_cast<size_t>(w.index() / 4) * 4;
  for (size_t q = 0; q < 4 && w.checks(); ++q) CheckFence(*cta.warps[first + q], i);
  OpHandle op = cluster.NewOperation();
  op->kind = AsyncKind::kWgmma;
  op->warp = &w;
  op->lane = -1;
  for (size_t q = 0; q < 4; ++q) {
    Warp& member = *cta.warps[first + q];
    op->matrices.push_back({&member, &i});
    if (i.modifiers & kSparse) op->registers.emplace_back(&member, i[3].slot);
    member.wgmma.open.push_back(op);
  }
  op->shared.push_back(
      {&cta, {plan->shared_reads.front().begin, plan->shared_reads.back().end}, false, plan->granules});
  cluster.counters().mma_shared_bytes += plan->shared_bytes;
  Rendezvous& group = cta.warpgroups[first / 4];
  if (group.last && group.last->state == AsyncOp::State::kPending) op->after.push_back(group.last);
  group.last = op;
  ++cluster.counters().mma_instructions;
  cluster.counters().mma_multiplies += static_cast<uint64_t>(plan->multiplies);
  op->effect = [plan = std::move(plan), &i, first, &cta](AsyncOp& self) { return Execute(*plan, i, first, cta, self); };
  return cluster.Issue(op) ? Outcome::kNext : Outcome::kFault;
}

// The four warps join; the last one issues for all.
Outcome Wgmma(Warp& w, const Instruction& i, uint32_t mask) {
  Cta& cta = w.cta();
  const size_t group = static_cast<size_t>(w.index()) / 4;
  if (cta.warps.size() < 4 * group + 4 || mask != kFullMask) {
    return w.Fault(FaultKind::kIllegalInstruction, std::countr_zero(mask), "wgmma needs four whole warps");
  }
  Rendezvous& meeting = cta.warpgroups[group];
  WaitState& wait = w.path().wait;
  if (wait.kind == WaitState::Kind::kWarpgroup) {
    if (meeting.generation == wait.generation) return Outcome::kBlocked;
    w.DoneWaiting();
    return Outcome::kNext;
  }
  if (meeting.arrived == 0) meeting.instruction = &i;
  if (meeting.instruction != &i) {
    return w.Fault(FaultKind::kIllegalInstruction, 0,
                   Cat("the warps of a warpgroup execute different wgmma: lines ", meeting.instruction->at.line,
                       " and ", i.at.line));
  }
  meeting.arrived |= 1u << (w.index() % 4);
  if (meeting.arrived != 0xf) {
    wait.generation = meeting.generation;
    return w.Block(WaitState::Kind::kWarpgroup, static_cast<uint32_t>(group));
  }
  meeting.arrived = 0;
  ++meeting.generation;
  cta.cluster().Signal();
  return IssueWgmma(w, i, mask);
}

Outcome WgmmaWait(Warp& w, const Instruction& i, uint32_t) {
  const auto keep = static_cast<size_t>(i[0].offset);
  for (; w.wgmma.closed.size() > keep; w.wgmma.closed.pop_front()) {
    for (const OpHandle& op : w.wgmma.closed.front()) {
      if (!w.cta().cluster().Await(op, w, w.live())) return Outcome::kFault;
    }
  }
  return Outcome::kNext;
}

std::optional<ElementType> ElementOf(Type type) {
  switch (type) {
    case Type::kF16:
      return ElementType::kF16;
    case Type::kBf16:
      return ElementType::kBf16;
    case Type::kTf32:
      return ElementType::kTf32;
    case Type::kE4m3:
      return ElementType::kE4m3;
    case Type::kE5m2:
      return ElementType::kE5m2;
    case Type::kS8:
      return ElementType::kS8;
    case Type::kU8:
      return ElementType::kU8;
    default:
      return std::nullopt;
  }
}

// The rows of up to four 8x8 matrices of 16-bit elements, of which lane 8m + r has the address of row r of matrix m.
// Element (row, column) of a matrix is in lane row * 4 + column / 2, so that 32 lanes of a register are its rows.
class MatrixRows {
 public:
  static constexpr uint32_t kBytes = 16;

  uint8_t* row(int lane) { return rows_[static_cast<size_t>(lane)].data(); }
  void Set(uint32_t m, const uint32_t* registers, bool transposed) {
    std::memcpy(rows_[size_t{8} * m].data(), registers, sizeof(Elements));
    if (transposed) Transpose(m);
  }
  void Get(uint32_t m, bool transposed, uint32_t* registers) {
    if (transposed) Transpose(m);
    std::memcpy(registers, rows_[size_t{8} * m].data(), sizeof(Elements));
  }

 private:
  using Elements = std::array<std::array<uint16_t, 8>, 8>;
  void Transpose(uint32_t m) {
    Elements from, to;
    std::memcpy(&from, rows_[size_t{8} * m].data(), sizeof(from));
    for (size_t r = 0; r < 8; ++r) {
      for (size_t c = 0; c < 8; ++c) to[c][r] = from[r][c];
    }
    std::memcpy(rows_[size_t{8} * m].data(), &to, sizeof(to));
  }

  std::array<std::array<uint8_t, kBytes>, kLanes> rows_;
};

// modifiers: number of 8x8 matrices, 1 << 8 for .trans. Lane l supplies the address of row l % 8 of matrix l / 8;
// element (row, column) of a matrix is in lane row * 4 + column / 2.
template <bool kLoad>
Outcome Matrix(Warp& w, const Instruction& i, uint32_t mask) {
  if (mask != kFullMask)
    return w.Fault(FaultKind::kIllegalInstruction, std::countr_zero(mask), "a matrix access needs the whole warp");
  const auto matrices = static_cast<uint32_t>(i.modifiers & 0xff);
  const bool transposed = i.modifiers >> 8 & 1;
  const DecodedOperand& address = i[kLoad ? 1 : 0];
  const DecodedOperand& values = i[kLoad ? 0 : 1];
  MatrixRows rows;
  if constexpr (!kLoad) {
    for (uint32_t m = 0; m < matrices; ++m) rows.Set(m, w.At<uint32_t>(values.elements[m]), transposed);
  }
  StoreRaces races(w);
  const auto move = [&](const HostBytes& hosts, uint32_t lanes) {
    const auto each = [&](auto copy) {
      ForLanes(lanes, [&](int lane) { copy(hosts[static_cast<size_t>(lane)], rows.row(lane)); });
    };
    if constexpr (kLoad) {
      each([](const uint8_t* host, uint8_t* row) { std::memcpy(row, host, MatrixRows::kBytes); });
    } else {
      races.Around(hosts, MatrixRows::kBytes, [&] {
        each([](uint8_t* host, const uint8_t* row) { std::memcpy(host, row, MatrixRows::kBytes); });
      });
    }
  };
  const uint32_t lanes = matrices == 4 ? kFullMask : (1u << 8 * matrices) - 1;
  const AccessKind kind = kLoad ? AccessKind::kRead : AccessKind::kWrite;
  HostBytes hosts{};
  if (LocateLanes(w, i.space, address, MatrixRows::kBytes, lanes, kind, hosts)) {
    move(hosts, lanes);
  } else {
    for (int lane = 0; lane < static_cast<int>(8 * matrices); ++lane) {
      Located at;
      if (!Locate(w, i.space, w.AddressOf(address, lane), MatrixRows::kBytes, lane, kind, at)) return Outcome::kFault;
      hosts[static_cast<size_t>(lane)] = at.host;
      move(hosts, uint32_t{1} << lane);
    }
  }
  if constexpr (kLoad) {
    for (uint32_t m = 0; m < matrices; ++m) rows.Get(m, transposed, w.At<uint32_t>(values.elements[m]));
  }
  return Outcome::kNext;
}

Result<Handler> MatrixHandler(const Match& match, Instruction& i, const DecodedOperand& values, Handler handler) {
  i.space = SpaceOf(match("SmemCta"));
  const auto count = static_cast<uint32_t>(match("Matrices")[1] - '0');
  if (values.count != count) return Wrong(Cat(count, " registers are needed, not ", values.count));
  i.modifiers = count | (match.Has("Trans") ? 256u : 0u);
  return handler;
}

}  // namespace

Result<Handler> BindWgmmaFence(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t) {
    w.fenced_wgmma = true;
    w.unfenced.assign(w.unfenced.size(), false);
    return Outcome::kNext;
  });
}
Result<Handler> BindWgmmaCommit(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t) { return w.wgmma.Close(), Outcome::kNext; });
}
Result<Handler> BindWgmmaWait(const Match&, Instruction& i) {
  if (i[0].offset < 0) return Wrong("the number of groups is not negative");
  return Handler(WgmmaWait);
}
Result<Handler> BindWgmma(const Match& match, Instruction& i) {
  const auto a = ElementOf(match.TypeAt(1).value_or(Type::kPred)), b = ElementOf(match.TypeAt(2).value_or(Type::kPred));
  if (!a) return WrongType(match, 1);
  if (!b) return WrongType(match, 2);
  const auto d = match.TypeAt(0);
  if (d != Type::kF32 && d != Type::kF16 && d != Type::kS32) return WrongType(match, 0);
  int m = 0, n = 0, k = 0;
  if (std::sscanf(std::string(match("Shape")).c_str(), "m%dn%dk%d", &m, &n, &k) != 3 || m != 64 || n < 8 || n > 256 ||
      k < 8 || k > 256)
    return Wrong("the shape is m64nNkK");
  const auto accumulator = d == Type::kF32   ? AccumulatorType::kF32
                           : d == Type::kF16 ? AccumulatorType::kF16
                                             : AccumulatorType::kS32;
  i.modifiers = static_cast<uint64_t>(n) | static_cast<uint64_t>(k) << 9 | static_cast<uint64_t>(*a) << 20 |
                static_cast<uint64_t>(*b) << 24 | static_cast<uint64_t>(accumulator) << 28 |
                (match.Has("Sat") ? uint64_t{kSaturate} : 0);
  const bool sparse = match.Has("sp");
  if (sparse) i.modifiers |= kSparse;
  const size_t after_predicate = sparse ? 6 : 4;
  if (i[after_predicate].offset == -1) i.modifiers |= kNegateA;
  if (i[after_predicate + 1].offset == -1) i.modifiers |= kNegateB;
  // With A in registers there is one transpose operand, B's.
  const bool a_in_registers = i[1].count != 0;
  if (!a_in_registers && i[after_predicate + 2].offset == 1) i.modifiers |= kTransposeA;
  if (i[after_predicate + (a_in_registers ? 2 : 3)].offset == 1) i.modifiers |= kTransposeB;
  if (a_in_registers && i[1].count != 4) return Wrong("A has four registers");
  i.watches_registers = false;
  i.is_wgmma = true;
  i.async_operands = static_cast<uint8_t>(kAsyncD | (a_in_registers ? kAsyncA : 0) | (sparse ? 1 << 3 : 0));
  return Handler(Wgmma);
}
Result<Handler> BindStmatrix(const Match& match, Instruction& i) {
  return MatrixHandler(match, i, i[1], Matrix<false>);
}
Result<Handler> BindLdmatrix(const Match& match, Instruction& i) { return MatrixHandler(match, i, i[0], Matrix<true>); }

}  // namespace laneshift::emulator
