#include "emulator/units/wgmma.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "emulator/units/sparse_metadata.h"

namespace laneshift::emulator {
namespace {

constexpr int kM = 64;
constexpr int kStepBytes = 32;  // every type eats 32 bytes of K per row

Error Bad(const WgmmaRequest& r, const std::string& why) {
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("wgmma.mma_async m64n", r.n, "k", r.k, " ", NameOf(r.d), ".",
                                                          NameOf(r.a), ".", NameOf(r.b), ": ", why));
}

bool IsEightBitFloat(ElementType t) { return t == ElementType::kE4m3 || t == ElementType::kE5m2; }

// The rows of the type table (PTX ISA, wgmma.mma_async).
Status CheckTypes(const WgmmaRequest& r) {
  const bool sixteen = r.a == ElementType::kF16 || r.a == ElementType::kBf16;
  const bool fp8 = IsEightBitFloat(r.a) && IsEightBitFloat(r.b);
  const bool integers = IsInteger(r.a) && IsInteger(r.b);
  if (!fp8 && !integers && (r.a != r.b || !(sixteen || r.a == ElementType::kTf32))) {
    return Bad(r, "these operand types do not go together");
  }
  const int stored = sixteen ? 16 : r.a == ElementType::kTf32 ? 8 : 32;
  const int k = r.selector ? 2 * stored : stored;
  if (r.k != k) return Bad(r, base::Cat("K must be ", k));
  if (integers != (r.d == AccumulatorType::kS32)) return Bad(r, "s32 results belong to s8 and u8 operands");
  if (r.d == AccumulatorType::kF16 && r.a != ElementType::kF16 && !fp8) {
    return Bad(r, "f16 results need f16 or 8-bit float operands");
  }
  if (!sixteen && (r.transpose_a || r.transpose_b)) return Bad(r, "only 16-bit operands can be transposed");
  if (r.transpose_a && !r.a_descriptor) return Bad(r, "A in registers cannot be transposed");
  if (integers && (r.negate_a || r.negate_b)) return Bad(r, "integer operands cannot be negated");
  const int selectors = BitsOf(r.a) == 8 ? 1 : 2;
  if (r.selector && (*r.selector < 0 || *r.selector >= selectors))
    return Bad(r, base::Cat("the sparsity selector is 0", selectors == 2 ? " or 1" : ""));
  if (r.saturate && !integers) return Bad(r, ".satfinite needs integer operands");
  const int step = integers && r.n > 32 ? 16 : 8;
  if (r.n < 8 || r.n > 256 || r.n % step != 0) return Bad(r, base::Cat("N must be a multiple of ", step, " up to 256"));
  return Ok();
}

OperandTile TileOf(ElementType type, bool transposed, int rows, int row_bytes = kStepBytes) {
  return {transposed ? OperandMajor::kMn : OperandMajor::kK, rows, row_bytes, BitsOf(type) / 8};
}

// Bytes of K per column of B: sparse A meets twice as many as it stores.
int ColumnBytes(const WgmmaRequest& r) { return r.selector ? 2 * kStepBytes : kStepBytes; }

Tcgen05Kind KindOf(ElementType type) {
  return BitsOf(type) == 32 ? Tcgen05Kind::kTf32 : BitsOf(type) == 16 ? Tcgen05Kind::kF16 : Tcgen05Kind::kF8f6f4;
}

// The stored rows of A spread over the dense positions that the metadata names.
Status LoadSparse(const WgmmaRequest& r, std::span<const uint32_t* const> metadata, const uint8_t* bytes,
                  OperandRows& rows) {
  const Tcgen05Kind kind = KindOf(r.a);
  const int chunks = r.k / ChunkOf(kind);
  std::vector<uint8_t> codes(static_cast<size_t>(chunks));
  std::vector<uint32_t> stored(static_cast<size_t>(r.k / 2)), dense(static_cast<size_t>(kM * r.k));
  for (int m = 0; m < kM; ++m) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const SparseCodePosition at = WgmmaCodePosition(r.a, *r.selector, m, chunk);
      codes[static_cast<size_t>(chunk)] = metadata[static_cast<size_t>(at.thread / 32)][at.thread % 32] >> at.bit & 15;
    }
    UnpackElements(r.a, Packing::kPlain, bytes + m * kStepBytes, r.k / 2, stored.data());
    const Status expanded = ExpandRow(kind, codes, stored.data(), dense.data() + m * r.k);
    if (!expanded) return expanded.error().Within(base::Cat("row ", m, " of A"));
  }
  rows.LoadCodes(OperandRows::Side::kA, r.a, kM, r.k, dense.data(), r.negate_a);
  return Ok();
}

}  // namespace

FragmentPosition AccumulatorPosition(int thread, int index) {
  const int warp = thread / 32, lane = thread % 32;
  return {16 * warp + lane / 4 + 8 * (index >> 1 & 1), 8 * (index >> 2) + 2 * (lane % 4) + (index & 1)};
}

FragmentPosition OperandPosition(ElementType type, int thread, int reg, int byte) {
  const int lane = thread % 32, bytes = BitsOf(type) / 8;
  // In bytes every type is the same: registers 0 and 1 hold the first 16 bytes of K, four bytes per lane.
  LS_CHECK(bytes == 1 || bytes == 2 || bytes == 4, "element of ", bytes, " bytes");
  return {16 * (thread / 32) + lane / 4 + 8 * (reg & 1), 16 * (reg >> 1) + 4 * (lane % 4) + byte};
}

SparseCodePosition WgmmaCodePosition(ElementType type, int selector, int row, int chunk) {
  const int quad = row / 16 * 32 + row % 8 * 4;  // its first thread
  const int upper = row / 8 % 2;
  if (BitsOf(type) == 8) return {quad + 2 * (chunk / 8) + upper, 4 * (chunk % 8)};
  return {quad + 2 * selector + chunk / 4, 16 * upper + 4 * (chunk % 4)};
}

Result<PlannedWgmma> PlanWgmma(const WgmmaRequest& request, const SharedWindow& window) {
  LS_TRY(CheckTypes(request));
  PlannedWgmma plan;
  plan.request = request;
  plan.d_registers = request.d == AccumulatorType::kF16 ? request.n / 4 : request.n / 2;
  plan.multiplies = int64_t{1} * kM * request.n * request.k;
  LS_ASSIGN(plan.b, DecodeWgmmaDescriptor(request.b_descriptor));
  GranuleSet reads;
  const auto add = [&](const MatrixDescriptor& descriptor, const OperandTile& tile, const char* name) -> Status {
    const Status added = AddGranules(descriptor, tile, window, reads);
    return added ? Ok() : added.error().Within(name);
  };
  LS_TRY(add(plan.b, TileOf(request.b, request.transpose_b, request.n, ColumnBytes(request)), "B"));
  if (request.a_descriptor) {
    LS_ASSIGN(plan.a, DecodeWgmmaDescriptor(*request.a_descriptor));
    LS_TRY(add(plan.a, TileOf(request.a, request.transpose_a, kM), "A"));
  }
  plan.shared_reads = reads.Ranges();
  plan.granules = reads.Words();
  plan.shared_bytes = BytesOf(*plan.granules);
  plan.pieces_b = PieceOffsets(plan.b, TileOf(request.b, request.transpose_b, request.n, ColumnBytes(request)));
  if (request.a_descriptor) plan.pieces_a = PieceOffsets(plan.a, TileOf(request.a, request.transpose_a, kM));
  return plan;
}

Status ExecuteWgmma(const PlannedWgmma& plan, SumArithmetic arithmetic, const SharedWindow& window,
                    std::span<const uint32_t* const> a, std::span<uint32_t* const> d,
                    std::span<const uint32_t* const> metadata, OperandBuffers& buffers) {
  const WgmmaRequest& r = plan.request;
  LS_CHECK(static_cast<int>(d.size()) == 4 * plan.d_registers, "accumulator registers ", d.size());
  LS_CHECK(a.size() == (r.a_descriptor ? 0u : 16u), "operand registers ", a.size());
  LS_CHECK(metadata.size() == (r.selector ? 4u : 0u), "metadata registers ", metadata.size());
  const int column_bytes = ColumnBytes(r);
  std::vector<uint8_t>& bytes = buffers.bytes_a;
  bytes.resize(static_cast<size_t>(std::max(kM, r.n) * column_bytes));
  OperandRows &rows_a = buffers.a, &rows_b = buffers.b;
  for (OperandRows* rows : {&rows_a, &rows_b}) rows->set_detail(DetailFor(arithmetic));
  if (r.a_descriptor) {
    GatherTile(plan.a, TileOf(r.a, r.transpose_a, kM), window, bytes.data(), kStepBytes, plan.pieces_a);
  } else {
    for (int thread = 0; thread < 128; ++thread) {
      for (int reg = 0; reg < 4; ++reg) {
        const FragmentPosition at = OperandPosition(r.a, thread, reg, 0);
        std::memcpy(bytes.data() + at.row * kStepBytes + at.column,
                    a[static_cast<size_t>(thread / 32 * 4 + reg)] + thread % 32, sizeof(uint32_t));
      }
    }
  }
  if (r.selector) {
    LS_TRY(LoadSparse(r, metadata, bytes.data(), rows_a));
  } else {
    rows_a.Load(OperandRows::Side::kA, r.a, Packing::kPlain, kM, r.k, bytes.data(), kStepBytes, r.negate_a);
  }
  const auto pitch = static_cast<size_t>(column_bytes);
  GatherTile(plan.b, TileOf(r.b, r.transpose_b, r.n, column_bytes), window, bytes.data(), pitch, plan.pieces_b);
  rows_b.Load(OperandRows::Side::kB, r.b, Packing::kPlain, r.n, r.k, bytes.data(), pitch, r.negate_b);

  SumOptions options;
  options.d = r.d;
  options.adder = WgmmaAdder(r.a, r.d);
  options.arithmetic = arithmetic;
  options.accumulate = r.accumulate;
  options.saturate = r.saturate;
  AccumulatorTile tile;
  tile.registers = d.data();
  tile.registers_per_thread = plan.d_registers;
  MultiplyAccumulate(rows_a, rows_b, options, tile);
  return Ok();
}

}  // namespace laneshift::emulator
