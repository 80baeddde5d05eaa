// The execution half of tcgen05_mma.h.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "emulator/units/sparse_metadata.h"
#include "emulator/units/tcgen05_mma.h"

namespace laneshift::emulator {
namespace {

constexpr int kStepBytes = 32;  // one K step of a row of A

// One execution: the operands of one CTA at a time.
class Execution {
 public:
  Execution(const PlannedMma& plan, SumArithmetic arithmetic, std::span<const CtaState> ctas, OperandBuffers& buffers)
      : plan_(plan),
        shape_(plan.shape),
        ctas_(ctas),
        rows_(plan.shape.m / plan.ctas),
        groups_(GroupsOf(plan.layout)),
        buffers_(buffers) {
    for (OperandRows* rows : {&buffers.a, &buffers.b}) rows->set_detail(DetailFor(arithmetic));
    const Tcgen05Kind kind = plan.request.qualifiers.kind;
    options_.d = shape_.d;
    options_.adder =
        kind == Tcgen05Kind::kMxf4 || kind == Tcgen05Kind::kMxf4nvf4 ? Tcgen05FourBitAdder() : Tcgen05Adder(shape_.d);
    options_.arithmetic = arithmetic;
    options_.accumulate = plan.request.accumulate;
    options_.saturate = shape_.saturate || plan.policies.integer_overflow == IntegerOverflow::kSaturates;
    options_.scale_d = shape_.d == AccumulatorType::kS32 ? 0 : plan.request.scale_d;
  }

  Status Run() {
    if (plan_.policies.ashift_time == AshiftTime::kBefore) ShiftA();
    FetchB();
    // Every operand of both CTAs is read before anything is written.
    for (size_t cta = 0; cta < ctas_.size(); ++cta) LS_TRY(Compute(static_cast<int>(cta)));
    for (size_t cta = 0; cta < ctas_.size(); ++cta) {
      if (!InPlace()) WriteBack(static_cast<int>(cta));
    }
    if (plan_.policies.ashift_time == AshiftTime::kAfter) ShiftA();
    return Ok();
  }

  const std::optional<MmaReport::Unwritten>& unwritten() const { return unwritten_; }
  const PolicySet& used() const { return used_; }

 private:
  void ShiftA() {
    if (!plan_.shift) return;
    for (const CtaState& cta : ctas_) ExecuteShift(*plan_.shift, *cta.tensor);
  }

  // The lane group whose rows of A and metadata `group` multiplies.
  int SourceOf(int group) const {
    const bool first = plan_.layout == DataPathLayout::kG && plan_.policies.row_copies == RowCopies::kFirst;
    return first ? 0 : group;
  }

  // All N columns of B as packed rows; zeroed columns as zero bytes, which are zeros in every type.
  void FetchB() {
    b_row_bytes_ = static_cast<size_t>(plan_.tile_b.k_bytes);
    const auto per_cta = static_cast<size_t>(plan_.tile_b.mn);
    std::vector<uint8_t>& tiles = buffers_.bytes_b;
    tiles.resize(per_cta * ctas_.size() * b_row_bytes_);
    for (size_t cta = 0; cta < ctas_.size(); ++cta) {
      GatherTile(plan_.b, plan_.tile_b, ctas_[cta].shared, tiles.data() + cta * per_cta * b_row_bytes_, b_row_bytes_,
                 plan_.pieces_b);
    }
    b_ = tiles.data() + static_cast<size_t>(plan_.zero_columns.shift) * b_row_bytes_;
    for (size_t n = 0; n < plan_.zero_columns.zero.size(); ++n) {
      if (plan_.zero_columns.zero[n]) std::fill_n(b_ + n * b_row_bytes_, b_row_bytes_, uint8_t{0});
    }
  }

  // The rows of A that `group` multiplies.
  Status LoadA(int cta, int group, OperandRows& a) {
    std::vector<uint8_t>& bytes = buffers_.bytes_a;
    const auto row_bytes = static_cast<size_t>(plan_.tile_a.k_bytes);
    bytes.resize(static_cast<size_t>(rows_) * row_bytes);
    const auto* address = std::get_if<TensorAddress>(&plan_.request.a);
    const CtaState& state = ctas_[static_cast<size_t>(cta)];
    if (address == nullptr) {
      GatherTile(plan_.a, plan_.tile_a, state.shared, bytes.data(), row_bytes, plan_.pieces_a);
    } else {
      for (int m = 0; m < rows_; ++m) {
        const int lane = LaneOf(plan_.layout, m, SourceOf(group), address->lane);
        std::memcpy(bytes.data() + m * kStepBytes, state.tensor->Row(lane) + address->column, kStepBytes);
      }
    }
    const Packing packing = PackingOf(plan_, shape_.a, address != nullptr);
    if (plan_.request.metadata) return LoadSparse(cta, group, packing, bytes, a);
    a.Load(OperandRows::Side::kA, shape_.a, packing, rows_, shape_.k, bytes.data(), row_bytes, shape_.negate_a);
    return Ok();
  }

  Status LoadSparse(int cta, int group, Packing packing, const std::vector<uint8_t>& bytes, OperandRows& a) {
    const Tcgen05Kind kind = plan_.request.qualifiers.kind;
    std::vector<uint8_t> nibbles(static_cast<size_t>(shape_.k / ChunkOf(kind)));
    std::vector<uint32_t> dense(static_cast<size_t>(rows_ * shape_.k));
    std::array<uint32_t, OperandRows::kMaxK> stored;
    for (int m = 0; m < rows_; ++m) {
      for (size_t i = 0; i < nibbles.size(); ++i) {
        const MetadataPosition at = PositionOf(kind, shape_.sparsity_selector, *plan_.request.metadata, plan_.layout,
                                               plan_.request.d.lane, m, SourceOf(group), static_cast<int>(i));
        const uint32_t word = ctas_[static_cast<size_t>(cta)].tensor->Read(at.cell.lane, at.cell.column);
        nibbles[i] = word >> at.bit & 15;
      }
      UnpackElements(shape_.a, packing, bytes.data() + m * kStepBytes, shape_.k / 2, stored.data());
      const Status expanded =
          ExpandRow(kind, nibbles, stored.data(), dense.data() + m * shape_.k, plan_.policies.tf32_nibble);
      if (!expanded) return expanded.error().Within(base::Cat("row ", m, " of A"));
    }
    a.LoadCodes(OperandRows::Side::kA, shape_.a, rows_, shape_.k, dense.data(), shape_.negate_a);
    return Ok();
  }

  void LoadB(int first, int columns, OperandRows& b) {
    b.Load(OperandRows::Side::kB, shape_.b, PackingOf(plan_, shape_.b, false), columns, shape_.k,
           b_ + static_cast<size_t>(first) * b_row_bytes_, b_row_bytes_, shape_.negate_b);
  }

  // The scale factors of `count` rows or columns at `address`; `lanes` is the first lane of the copy that counts, and
  // `copies` of 32 lanes from there must agree.
  Status FetchScales(int cta, TensorAddress address, int id, int count, int lanes, int copies, const char* name,
                     std::vector<uint8_t>& to) {
    const TensorMemory& memory = *ctas_[static_cast<size_t>(cta)].tensor;
    const int end = id + shape_.scale_factors;
    for (int i = 0; i < count; ++i) {
      for (int cell = 0; 4 * cell < end; ++cell) {
        const int column = address.column + i / 32 + cell * ScaleCellStep(count);
        const uint32_t word = memory.Read(lanes + i % 32, column);
        for (int copy = 1; copy < copies; ++copy) {
          if (memory.Read(lanes + 32 * copy + i % 32, column) == word) continue;
          return MakeError(ErrorCode::kInvalidArgument,
                           base::Cat("scale factors of ", name, " differ between lanes ", lanes + i % 32, " and ",
                                     lanes + 32 * copy + i % 32, " of column ", column, ": all copies must be equal"));
        }
        for (int s = std::max(id, 4 * cell); s < std::min(end, 4 * cell + 4); ++s)
          to.push_back(static_cast<uint8_t>(word >> (8 * (s % 4))));
      }
    }
    return Ok();
  }

  // The scale factors of A's rows, and of the columns of `part` of `parts`.
  Status LoadScales(int cta, int part, int parts, OperandRows& a, OperandRows& b) {
    if (!IsBlockScaled(plan_.request.qualifiers.kind)) return Ok();
    std::vector<uint8_t> scales;
    LS_TRY(FetchScales(cta, plan_.request.scales_a, shape_.scale_a_id, rows_, 0, 4, "A", scales));
    a.LoadScales(shape_.scale, shape_.scale_factors, scales.data());
    scales.clear();
    const int per_group = shape_.n / groups_;
    for (int group = part * groups_ / parts; group < (part + 1) * groups_ / parts; ++group) {
      LS_TRY(FetchScales(cta, plan_.request.scales_b, shape_.scale_b_id, per_group, 128 / groups_ * group, 4 / groups_,
                         "B", scales));
    }
    b.LoadScales(shape_.scale, shape_.scale_factors, scales.data());
    return Ok();
  }

  bool AnyDisabled(int cta) const {
    const auto& words = plan_.disabled[static_cast<size_t>(cta)];
    return std::any_of(words.begin(), words.end(), [](uint32_t word) { return word != 0; });
  }
  bool Disabled(int cta, int lane) const {
    return plan_.disabled[static_cast<size_t>(cta)][static_cast<size_t>(lane / 32)] >> (lane % 32) & 1;
  }
  bool KeepsUpperHalf() const {
    return shape_.d == AccumulatorType::kF16 && plan_.policies.upper_half == UpperHalf::kKept;
  }

  // Each row in one lane: the sums can work on Tensor Memory itself, but for lanes whose output is disabled.
  bool InPlace() const { return groups_ == 1 && !KeepsUpperHalf(); }

  // Rows of disabled lanes are copies.
  uint32_t* const* RowsInPlace(int cta) {
    TensorMemory& memory = *ctas_[static_cast<size_t>(cta)].tensor;
    const auto n = static_cast<size_t>(shape_.n);
    std::vector<uint32_t*>& rows = buffers_.rows_d;
    rows.resize(static_cast<size_t>(rows_));
    const bool any_disabled = AnyDisabled(cta);
    std::vector<uint32_t>& copies = buffers_.results[static_cast<size_t>(cta)];
    if (any_disabled) copies.resize(static_cast<size_t>(rows_) * n);
    constexpr int kAdjacent = 16;  // rows in adjacent lanes, in every layout
    for (int first = 0; first < rows_; first += kAdjacent) {
      const int lane = LaneOf(plan_.layout, first, 0, plan_.request.d.lane);
      uint32_t* const cells = memory.Row(lane) + plan_.request.d.column;
      for (int r = 0; r < kAdjacent; ++r) rows[static_cast<size_t>(first + r)] = cells + r * TensorMemory::kColumns;
    }
    if (!any_disabled) return rows.data();
    ForEachRow([&](int m, int, int lane, int) {
      const auto row = static_cast<size_t>(m);
      if (Disabled(cta, lane)) rows[row] = std::copy_n(rows[row], n, copies.data() + row * n) - n;
    });
    return rows.data();
  }

  void MarkInPlace(int cta) {
    TensorMemory& memory = *ctas_[static_cast<size_t>(cta)].tensor;
    const bool any_disabled = AnyDisabled(cta);
    for (const TensorRange& range : plan_.touched[static_cast<size_t>(cta)].tensor_writes) {
      if (range.column == plan_.request.d.column && !any_disabled) memory.MarkWritten(range);
    }
    if (!any_disabled) return;
    ForEachRow([&](int, int, int lane, int columns) {
      if (!Disabled(cta, lane)) MarkLane(memory, lane, columns);
    });
  }

  void MarkLane(TensorMemory& memory, int lane, int columns) const {
    memory.MarkWritten({static_cast<uint16_t>(lane), 1, plan_.request.d.column, static_cast<uint16_t>(columns)});
  }

  Status Compute(int cta) {
    NoteUnwritten(cta);
    const CtaState& state = ctas_[static_cast<size_t>(cta)];
    const auto n = static_cast<size_t>(shape_.n);
    AccumulatorTile tile;
    if (InPlace()) {
      tile.rows = RowsInPlace(cta);
    } else {
      std::vector<uint32_t>& cells = buffers_.results[static_cast<size_t>(cta)];
      cells.resize(static_cast<size_t>(rows_) * n);
      ForEachRow([&](int m, int group, int lane, int columns) {
        std::copy_n(state.tensor->Row(lane) + plan_.request.d.column, columns,
                    cells.data() + static_cast<size_t>(m) * n + static_cast<size_t>(group * columns));
      });
      tile.cells = cells.data();
      tile.pitch = n;
    }
    // With A in Tensor Memory every group multiplies its own copy; from shared memory there is only one.
    const int parts = std::holds_alternative<TensorAddress>(plan_.request.a) || plan_.request.metadata ? groups_ : 1;
    const int columns = shape_.n / parts;
    OperandRows &a = buffers_.a, &b = buffers_.b;
    for (int part = 0; part < parts; ++part) {
      LS_TRY(LoadA(cta, part, a));
      LoadB(part * columns, columns, b);
      LS_TRY(LoadScales(cta, part, parts, a, b));
      MultiplyAccumulate(a, b, options_, tile);
      NoteOverflow(tile, columns);
      if (parts > 1) tile.cells += columns;  // InPlace has one part
    }
    if (InPlace()) MarkInPlace(cta);
    return Ok();
  }

  // Integer sums that may have left 32 bits: one instruction adds less than 2^22, so they end near the limits.
  void NoteOverflow(const AccumulatorTile& tile, int columns) {
    if (shape_.d != AccumulatorType::kS32 || shape_.saturate || used_.Has(Policy::kIntegerOverflow)) return;
    constexpr int64_t kNear = INT32_MAX - (int64_t{1} << 22);
    for (int m = 0; m < rows_; ++m) {
      const uint32_t* row = tile.Row(m);
      const bool near = std::any_of(row, row + columns, [](uint32_t cell) {
        return std::abs(static_cast<int64_t>(static_cast<int32_t>(cell))) > kNear;
      });
      if (near) return used_.Add(Policy::kIntegerOverflow);
    }
  }

  // visit(m, group, lane, columns of a group)
  template <typename Visit>
  void ForEachRow(Visit visit) const {
    for (int group = 0; group < groups_; ++group) {
      for (int m = 0; m < rows_; ++m) {
        visit(m, group, LaneOf(plan_.layout, m, group, plan_.request.d.lane), shape_.n / groups_);
      }
    }
  }

  void WriteBack(int cta) {
    TensorMemory& memory = *ctas_[static_cast<size_t>(cta)].tensor;
    const std::vector<uint32_t>& cells = buffers_.results[static_cast<size_t>(cta)];
    ForEachRow([&](int m, int group, int lane, int columns) {
      if (Disabled(cta, lane)) return;
      const uint32_t* from =
          cells.data() + static_cast<size_t>(m) * static_cast<size_t>(shape_.n) + static_cast<size_t>(group * columns);
      uint32_t* to = memory.Row(lane) + plan_.request.d.column;
      if (KeepsUpperHalf()) {
        for (int c = 0; c < columns; ++c) to[c] = (to[c] & 0xffff0000) | from[c];
      } else {
        std::copy_n(from, columns, to);
      }
      MarkLane(memory, lane, columns);
    });
  }

  // Lanes whose output is disabled do not count as readers of D.
  void NoteUnwritten(int cta) {
    const TensorMemory& memory = *ctas_[static_cast<size_t>(cta)].tensor;
    for (const TensorRange& range : plan_.touched[static_cast<size_t>(cta)].tensor_reads) {
      if (unwritten_) return;
      if (!memory.FirstUnwritten(range)) continue;
      const bool is_d = range.column == plan_.request.d.column;
      for (int lane = range.lane; is_d && lane < range.lane + range.lanes && !unwritten_; ++lane) {
        if (Disabled(cta, lane)) continue;
        Note(cta, memory.FirstUnwritten({static_cast<uint16_t>(lane), 1, range.column, range.columns}), range);
      }
      if (!is_d) Note(cta, memory.FirstUnwritten(range), range);
    }
  }

  void Note(int cta, const std::optional<TensorAddress>& cell, const TensorRange& range) {
    if (!cell) return;
    const MmaRequest& r = plan_.request;
    const auto* a = std::get_if<TensorAddress>(&r.a);
    const char* role = "metadata";
    if (range.column == r.d.column) {
      role = "D";
    } else if (a != nullptr && range.column == a->column) {
      role = "A";
    } else if (IsBlockScaled(r.qualifiers.kind)) {
      role = range.column == r.scales_a.column ? "scale A" : "scale B";
    }
    unwritten_ = MmaReport::Unwritten{cta, *cell, role};
  }

  const PlannedMma& plan_;
  const Tcgen05Descriptor& shape_;
  std::span<const CtaState> ctas_;
  int rows_, groups_;
  SumOptions options_;
  OperandBuffers& buffers_;
  uint8_t* b_ = nullptr;  // all columns of B, packed
  size_t b_row_bytes_ = 0;
  std::optional<MmaReport::Unwritten> unwritten_;
  PolicySet used_;
};

}  // namespace

Result<MmaReport> ExecuteMma(const PlannedMma& plan, SumArithmetic arithmetic, std::span<const CtaState> ctas,
                             OperandBuffers& buffers) {
  LS_CHECK(static_cast<int>(ctas.size()) == plan.ctas, "CTAs ", ctas.size(), " for cta_group ", plan.ctas);
  Execution execution(plan, arithmetic, ctas, buffers);
  LS_TRY(execution.Run());
  return MmaReport{execution.unwritten(), execution.used()};
}

}  // namespace laneshift::emulator
