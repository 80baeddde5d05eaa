#include "emulator/units/tensor_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::emulator {
namespace {

enum class Direction : uint8_t { kLoad, kStore };

Error Illegal(const std::string& rule) {
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("illegal instruction: ", rule));
}

// How one row of a copy lies in memory.
struct RowShape {
  int64_t elements = 0;       // per row
  int global_bits = 8;        // per element
  uint32_t shared_bytes = 0;  // per row
  uint32_t pitch = 0;
  bool padded = false;  // 16 elements per 16 shared bytes, less in global memory
};

RowShape RowShapeOf(const TensorMap& map, int64_t elements) {
  RowShape row;
  row.elements = elements;
  row.global_bits = ElementBits(map.element);
  row.padded = map.element == TensorElement::k16U4Align16B || map.element == TensorElement::k16U6Align16B;
  row.shared_bytes = static_cast<uint32_t>(row.padded ? elements : elements * row.global_bits / 8);
  row.pitch = row.shared_bytes;
  switch (map.swizzle) {
    case TensorSwizzle::kNone:
      return row;
    case TensorSwizzle::k32B:
      row.pitch = 32;
      return row;
    case TensorSwizzle::k64B:
      row.pitch = 64;
      return row;
    case TensorSwizzle::k128B:
    case TensorSwizzle::k128BAtom32B:
    case TensorSwizzle::k128BAtom32BFlip8B:
    case TensorSwizzle::k128BAtom64B:
      break;
  }
  row.pitch = 128;
  return row;
}

// Builds the runs of a plan row by row.
class Walk {
 public:
  Walk(const TensorMap& map, const TensorCopy& copy, Direction direction, int64_t elements, CopyPlan& plan)
      : map_(map), copy_(copy), direction_(direction), row_(RowShapeOf(map, elements)), plan_(plan) {
    row_bytes_ = ToBytes(elements);
    plan_.runs.clear();
    plan_.transaction_bytes = 0;
    plan_.shared_bytes = 0;
    plan_.used = {};
    // Loads clip dimension 0 per element, stores only at the next multiple of 16 bytes (seen on an H200).
    end_bytes_ = static_cast<int64_t>(map.dims[0]) * row_.global_bits / 8;
    if (direction == Direction::kStore) end_bytes_ = (end_bytes_ + 15) / 16 * 16;
  }

  // Row `index` of the image: `outside` when another dimension is out of bounds, else its elements start at
  // `global` + start_bytes.
  void Row(uint32_t index, bool outside, uint64_t global, int64_t start_bytes) {
    const uint32_t linear = copy_.shared + index * row_.pitch;
    plan_.transaction_bytes += static_cast<uint32_t>(row_bytes_);
    plan_.shared_bytes = std::max(plan_.shared_bytes, (index + 1) * row_.pitch);
    const uint64_t from = global + static_cast<uint64_t>(start_bytes);
    const bool whole = !outside && start_bytes >= 0 && start_bytes + row_bytes_ <= end_bytes_;
    if (whole && !row_.padded) return Part(linear, 0, row_bytes_, from);
    // The part of the row that exists, in global bytes from its start.
    int64_t first = outside ? row_bytes_ : std::clamp<int64_t>(-start_bytes, 0, row_bytes_);
    int64_t last = outside ? row_bytes_ : std::clamp<int64_t>(end_bytes_ - start_bytes, first, row_bytes_);
    if (first == last) first = last = row_bytes_;
    if (row_.padded) return PaddedRow(linear, first, last, from);
    Part(linear, 0, first, 0);
    Part(linear, first, last, from);
    Part(linear, last, row_bytes_, 0);
  }
  // So many rows will come.
  void Expect(size_t rows) { plan_.runs.reserve(rows); }

  int64_t ToBytes(int64_t elements) const { return elements * row_.global_bits / 8; }

 private:
  // Bytes [begin, end) of a row; global 0 means fill.
  void Part(uint32_t linear, int64_t begin, int64_t end, uint64_t global) {
    if (begin >= end || (global == 0 && direction_ == Direction::kStore)) return;
    const bool fill = global == 0;
    const uint32_t shared = linear + static_cast<uint32_t>(begin);
    const auto bytes = static_cast<uint16_t>(end - begin);
    plan_.runs.push_back({fill ? 0 : global + static_cast<uint64_t>(begin), shared,
                          SwizzleTensorAddress(map_.swizzle, shared) ^ shared, bytes, fill ? uint16_t{0} : bytes});
  }

  // Sixteen elements per 16 shared bytes and 8 or 12 global bytes; such rows exist wholly or not at all.
  void PaddedRow(uint32_t linear, int64_t first, int64_t last, uint64_t global) {
    const bool fill = first == last;
    if (fill && direction_ == Direction::kStore) return;
    const auto chunk_bytes = static_cast<uint16_t>(2 * row_.global_bits);
    for (uint32_t chunk = 0; chunk * 16 < row_.shared_bytes; ++chunk) {
      const uint32_t shared = SwizzleTensorAddress(map_.swizzle, linear + chunk * 16);
      plan_.runs.push_back({fill ? 0 : global + chunk * chunk_bytes, shared, 0, 16, fill ? uint16_t{0} : chunk_bytes});
    }
  }

  const TensorMap& map_;
  const TensorCopy& copy_;
  Direction direction_;
  RowShape row_;
  CopyPlan& plan_;
  int64_t end_bytes_ = 0;
  int64_t row_bytes_ = 0;  // in global memory
};

Status CheckCopy(const TensorMap& map, const TensorCopy& copy, Direction direction) {
  if (copy.shared % 128 != 0) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("misaligned address: the shared address ", copy.shared,
                                                            " of a tensor copy must be a multiple of 128"));
  }
  const int64_t bits = int64_t{copy.coordinates[0]} * ElementBits(map.element);
  if (bits % 128 != 0) {
    return Illegal(base::Cat("coordinate 0 is ", copy.coordinates[0], ", not a multiple of 16 bytes"));
  }
  if ((map.element == TensorElement::k16U4Align16B || map.element == TensorElement::k16U6Align16B) &&
      copy.coordinates[0] % 128 != 0) {
    return Illegal(base::Cat("coordinate 0 is ", copy.coordinates[0], ", not a multiple of 128 packed elements"));
  }
  const bool im2col = map.mode != TensorMapMode::kTiled;
  if (im2col != (copy.form == CopyForm::kIm2col)) {
    return Illegal(im2col ? "a tile copy with an im2col tensor map" : "an im2col copy with a tiled tensor map");
  }
  if (direction == Direction::kLoad) return Ok();
  if (map.swizzle == TensorSwizzle::k128BAtom32BFlip8B || map.element == TensorElement::k16U4Align16B) {
    return Illegal("this tensor map is for loads only");
  }
  return Ok();
}

Status WalkTile(const TensorMap& map, const TensorCopy& copy, Walk& walk) {
  std::array<uint32_t, 5> count{1, 1, 1, 1, 1};
  const auto rank = static_cast<size_t>(map.rank);
  for (size_t i = 1; i < rank; ++i) count[i] = (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  const int64_t start = walk.ToBytes(copy.coordinates[0]);
  walk.Expect(size_t{count[1]} * count[2] * count[3] * count[4]);
  std::array<uint32_t, 5> j{};
  uint32_t index = 0;
  // Moves `global` to place j of dimension i; false: that is outside.
  const auto enter = [&](size_t i, uint64_t& global) {
    if (i >= rank) return true;
    const int64_t at = copy.coordinates[i] + int64_t{j[i]} * map.element_strides[i];
    global += static_cast<uint64_t>(at) * map.strides[i];
    return at >= 0 && at < static_cast<int64_t>(map.dims[i]);
  };
  for (j[4] = 0; j[4] < count[4]; ++j[4]) {
    for (j[3] = 0; j[3] < count[3]; ++j[3]) {
      for (j[2] = 0; j[2] < count[2]; ++j[2]) {
        uint64_t plane = map.address;
        bool inside = true;
        for (const size_t i : {4, 3, 2}) inside = enter(i, plane) && inside;
        for (j[1] = 0; j[1] < count[1]; ++j[1]) {
          uint64_t global = plane;
          const bool row_inside = enter(1, global) && inside;
          walk.Row(index++, !row_inside, global, start);
        }
      }
    }
  }
  return Ok();
}

Status WalkGather(const TensorMap& map, const TensorCopy& copy, Walk& walk) {
  if (map.rank != 2 || map.box[1] != 1) return Illegal("gather4 and scatter4 need a 2-D map with boxDim[1] = 1");
  for (uint32_t k = 0; k < 4; ++k) {
    const int64_t row = copy.coordinates[k + 1];
    const bool outside = row < 0 || row >= static_cast<int64_t>(map.dims[1]);
    walk.Row(k, outside, map.address + static_cast<uint64_t>(row) * map.strides[1], walk.ToBytes(copy.coordinates[0]));
  }
  return Ok();
}

// The cursor of an im2col traversal: W, H, D (as many as there are), N.
class PixelCursor {
 public:
  explicit PixelCursor(const TensorMap& map) : map_(map), spatial_(static_cast<size_t>(map.rank - 2)) {}

  std::array<int64_t, 4> at{};  // the last used entry is N

  bool Outside(const std::array<int64_t, 3>& offsets) const {
    for (size_t s = 0; s < spatial_; ++s) {
      const int64_t p = at[s] + offsets[s];
      if (p < 0 || p >= static_cast<int64_t>(map_.dims[s + 1])) return true;
    }
    return at[spatial_] < 0 || at[spatial_] >= static_cast<int64_t>(map_.dims[spatial_ + 1]);
  }
  uint64_t Address(const std::array<int64_t, 3>& offsets) const {
    uint64_t address = map_.address;
    for (size_t s = 0; s < spatial_; ++s) address += static_cast<uint64_t>(at[s] + offsets[s]) * map_.strides[s + 1];
    return address + static_cast<uint64_t>(at[spatial_]) * map_.strides[spatial_ + 1];
  }
  // One stop on, carrying through the first `carried` spatial dimensions into N, which moves by `step`; `shift` moves
  // the box along W.
  void Advance(size_t carried, int64_t shift, int64_t step) {
    for (size_t s = 0; s < carried; ++s) {
      const int64_t offset = s == 0 ? shift : 0;
      at[s] += map_.element_strides[s + 1];
      if (at[s] <= static_cast<int64_t>(map_.dims[s + 1]) - 1 + map_.upper_corner[s] + offset) return;
      at[s] = map_.lower_corner[s] + offset;
    }
    at[spatial_] += step;
  }
  size_t spatial() const { return spatial_; }

 private:
  const TensorMap& map_;
  size_t spatial_;
};

Status WalkIm2col(const TensorMap& map, const TensorCopy& copy, Walk& walk) {
  PixelCursor cursor(map);
  std::array<int64_t, 3> offsets{};
  for (size_t s = 0; s < cursor.spatial(); ++s) {
    const int64_t start = copy.coordinates[s + 1];
    const int64_t last = static_cast<int64_t>(map.dims[s + 1]) - 1 + map.upper_corner[s];
    if (start < map.lower_corner[s] || start > last) {
      return Illegal(base::Cat("im2col coordinate ", s + 1, " is ", start, ", outside the pixel box ",
                               map.lower_corner[s], " to ", last));
    }
    const uint32_t greatest = map.rank == 3 ? 65535 : map.rank == 4 ? 255 : 31;
    if (copy.offsets[s] > greatest) return Illegal(base::Cat("im2col offset ", copy.offsets[s], " above ", greatest));
    offsets[s] = copy.offsets[s];
    cursor.at[s] = start;
  }
  cursor.at[cursor.spatial()] = copy.coordinates[cursor.spatial() + 1];
  walk.Expect(map.pixels);
  for (uint32_t q = 0; q < map.pixels; ++q) {
    walk.Row(q, cursor.Outside(offsets), cursor.Address(offsets), walk.ToBytes(copy.coordinates[0]));
    cursor.Advance(cursor.spatial(), 0, map.element_strides[cursor.spatial() + 1]);
  }
  return Ok();
}

// im2col::w and im2col::w::128: only W advances, and a row that ends carries into N.
Status WalkWide(const TensorMap& map, const TensorCopy& copy, Walk& walk) {
  const bool fixed = map.mode == TensorMapMode::kIm2colWide128;
  const uint32_t halo = copy.offsets[0], shift = copy.offsets[1];
  if (halo >= (fixed ? 32u : 512u) || shift >= 32) {
    return Illegal(
        base::Cat("im2col::w halo ", halo, " must be below ", fixed ? 32 : 512, ", offset ", shift, " below 32"));
  }
  PixelCursor cursor(map);
  const int64_t last = static_cast<int64_t>(map.dims[1]) - 1 + map.upper_corner[0];
  if (copy.coordinates[1] > last) {
    return Illegal(
        base::Cat("im2col::w coordinate 1 is ", copy.coordinates[1], ", right of the pixel box ending at ", last));
  }
  for (size_t s = 0; s <= cursor.spatial(); ++s) cursor.at[s] = copy.coordinates[s + 1];
  cursor.at[0] += shift;
  const std::array<int64_t, 3> none{};
  const int64_t start = walk.ToBytes(copy.coordinates[0]);
  // Stop q is row q; with the fixed 128, stops 32(g+1)+j, j < halo, appear once more after the main rows.
  const uint32_t stops = fixed ? 128 + halo : map.pixels + halo;
  for (uint32_t q = 0; q < stops; ++q, cursor.Advance(1, shift, 1)) {
    const bool outside = cursor.Outside(none);
    const uint64_t address = cursor.Address(none);
    if (!fixed || q < 128) walk.Row(q, outside, address, start);
    if (fixed && q >= 32 && q % 32 < halo) walk.Row(128 + (q / 32 - 1) * halo + q % 32, outside, address, start);
  }
  return Ok();
}

Status PlanTensorCopy(const TensorMap& map, const TensorCopy& copy, Direction direction, CopyPlan& plan) {
  LS_TRY(CheckCopy(map, copy, direction));
  Walk walk(map, copy, direction, map.mode == TensorMapMode::kTiled ? map.box[0] : map.channels, plan);
  if (copy.form == CopyForm::kTile) return WalkTile(map, copy, walk);
  if (copy.form == CopyForm::kGather4) return WalkGather(map, copy, walk);
  return map.mode == TensorMapMode::kIm2col ? WalkIm2col(map, copy, walk) : WalkWide(map, copy, walk);
}

// Only loads take a pixel box that is not the tensor itself (measured on an H200: a store through one is an illegal
// instruction even where it starts and ends inside).
Status CheckStoredBox(const TensorMap& map) {
  for (size_t s = 0; s + 2 < static_cast<size_t>(map.rank); ++s) {
    if (map.lower_corner[s] == 0 && map.upper_corner[s] == 0) continue;
    return Illegal(base::Cat("an im2col store needs pixel box corners of 0, not ", map.lower_corner[s], " and ",
                             map.upper_corner[s], " in dimension ", s + 1));
  }
  return Ok();
}

// What `packed` bytes of a padded type take in shared memory: sixteen elements per 16 bytes.
uint32_t PaddedBytes(TensorElement element, uint32_t packed) {
  const bool padded = element == TensorElement::k16U4Align16B || element == TensorElement::k16U6Align16B;
  return padded ? packed * 8 / static_cast<uint32_t>(ElementBits(element)) : packed;
}

// TFLOAT32 maps round to nearest even on load; infinities stay, NaNs become one.
uint32_t RoundToTf32(uint32_t word) {
  if ((word & 0x7f800000) == 0x7f800000) return (word & 0x7fffff) != 0 ? 0x7fffe000 : word;
  return (word + 0xfff + (word >> 13 & 1)) & 0xffffe000;
}

// Calls copy(at, offset, count) as ForEachPiece does, but 16 bytes at a time where these lie together in a swizzled
// run: a copy of known length is an instruction or two, one of another length a call. The run is by value, apart from
// what is written.
template <typename Copy>
void ForEachCopied(TensorRun run, Copy copy) {
  if (run.flip == 0 || ((run.shared | run.bytes | run.flip) & 15) != 0) return run.ForEachPiece(copy);
  constexpr std::integral_constant<uint32_t, 16> kPiece{};
  if (run.bytes == 128) {
#pragma GCC unroll 8
    for (uint32_t at = 0; at < 128; at += kPiece) copy(at, run.shared + (at ^ run.flip), kPiece);
    return;
  }
  for (uint32_t at = 0; at < run.bytes; at += kPiece) copy(at, (run.shared + at) ^ run.flip, kPiece);
}

}  // namespace

Status PlanTensorLoad(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan, const Policies& policies) {
  LS_TRY(PlanTensorCopy(map, copy, Direction::kLoad, plan));
  const uint32_t written = PaddedBytes(map.element, plan.transaction_bytes);
  if (written == plan.transaction_bytes) return Ok();
  plan.used.Add(Policy::kPackedBytes);
  if (policies.packed_bytes == PackedBytes::kWritten) plan.transaction_bytes = written;
  return Ok();
}

Status PlanTensorStore(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan) {
  if (map.mode >= TensorMapMode::kIm2colWide) return Illegal("the wide im2col modes have no stores");
  if (map.mode == TensorMapMode::kIm2col) LS_TRY(CheckStoredBox(map));
  const int coordinates = copy.form == CopyForm::kGather4 ? 5 : map.rank;
  // That of im2col copies is checked against their box.
  for (int i = 0; i < coordinates && copy.form != CopyForm::kIm2col; ++i) {
    const int32_t c = copy.coordinates[static_cast<size_t>(i)];
    if (c < 0) return Illegal(base::Cat("coordinate ", i, " of a tensor store is ", c, ", must not be negative"));
  }
  return PlanTensorCopy(map, copy, Direction::kStore, plan);
}

void AddSharedRanges(const CopyPlan& plan, std::vector<SharedRange>& ranges) {
  const auto add = [&](uint32_t begin, uint32_t end) {
    begin &= ~15u;
    end = (end + 15) & ~15u;
    if (!ranges.empty() && ranges.back().begin <= begin && begin <= ranges.back().end) {
      ranges.back().end = std::max(ranges.back().end, end);
    } else {
      ranges.push_back({begin, end});
    }
  };
  for (const TensorRun& run : plan.runs) {
    if (run.FillsItsRange()) {
      add(run.shared, run.shared + run.bytes);
    } else {
      run.ForEachPiece([&](uint32_t, uint32_t offset, uint32_t count) { add(offset, offset + count); });
    }
  }
  if (ranges.size() < 2) return;
  GranuleSet granules;  // partial rows visit their granules out of order
  for (const SharedRange& range : ranges) granules.Add(range);
  ranges = granules.Ranges();
}

std::vector<SharedRange> SharedRangesOf(const CopyPlan& plan) {
  std::vector<SharedRange> ranges;
  AddSharedRanges(plan, ranges);
  return ranges;
}

void LoadRun(const TensorMap& map, const TensorRun& run, const uint8_t* global, const SharedWindow& shared) {
  if (run.global_bytes == 0) {
    run.ForEachPiece([&](uint32_t at, uint32_t offset, uint32_t count) {
      uint8_t* to = shared.At(offset);
      for (uint32_t i = 0; i < count; ++i) {
        to[i] = map.fill == TensorFill::kZero ? 0 : (at + i) % 2 == 0 ? 0xf7 : 0x7f;
      }
    });
    return;
  }
  if (run.global_bytes != run.bytes) {  // padded types are never cut
    std::memcpy(shared.At(run.shared ^ run.flip), global, run.global_bytes);
    return;
  }
  const bool rounds = map.element == TensorElement::kTf32 || map.element == TensorElement::kTf32Ftz;
  if (!rounds) {
    return ForEachCopied(run, [global, shared](uint32_t at, uint32_t offset, auto count) {
      std::memcpy(shared.At(offset), global + at, count);
    });
  }
  run.ForEachPiece([&](uint32_t at, uint32_t offset, uint32_t count) {
    uint8_t* to = shared.At(offset);
    std::memcpy(to, global + at, count);
    for (uint32_t i = 0; i < count; i += 4) {
      uint32_t word;
      std::memcpy(&word, to + i, sizeof(word));
      word = RoundToTf32(word);
      std::memcpy(to + i, &word, sizeof(word));
    }
  });
}

void StoreRun(const TensorMap& map, const TensorRun& run, uint8_t* global, const SharedWindow& shared) {
  if (map.element != TensorElement::k16U6Align16B) {
    // What is written ends where the tensor does.
    if (run.global_bytes == run.bytes) {
      return ForEachCopied(run, [global, shared](uint32_t at, uint32_t offset, auto count) {
        std::memcpy(global + at, shared.At(offset), count);
      });
    }
    run.ForEachPiece([&](uint32_t at, uint32_t offset, uint32_t count) {
      std::memcpy(global + at, shared.At(offset), std::min<uint32_t>(count, run.global_bytes));
    });
    return;
  }
  const uint8_t* from = shared.At(run.shared ^ run.flip);
  unsigned __int128 packed = 0;
  for (int i = 15; i >= 0; --i) packed = packed << 6 | (from[i] & 63);
  std::memcpy(global, &packed, run.global_bytes);
}

}  // namespace laneshift::emulator
