// ProductView: a problem as `batches` products of an m x k by a k x n matrix, as the references see it: the index of
// every element.
//
// Shared source: the host's compiler includes it, and NVRTC gets it as a part of the device's reference
// (measure/reference/reference_operands.cuh). So it includes nothing, and uses no fixed-width types. It shares nothing
// with the compiler whose kernels it checks. Thread-safety: values.
#ifndef LANESHIFT_MEASURE_REFERENCE_PRODUCT_VIEW
#define LANESHIFT_MEASURE_REFERENCE_PRODUCT_VIEW

#ifdef __CUDACC__
#define LS_BOTH __device__
#else
#define LS_BOTH
#endif

namespace laneshift::measure {

// The layout of an operand: strides in elements.
struct OperandPlace {
  long long batch;  // from product to product
  // Of A, C and D from image to image and so on; rows of a matrix count as pixels. Of B `image` is from column to
  // column, and the others are from tap to tap.
  long long image, plane, row, pixel;
  long long element;  // along K of A and B, along a row of C and D
};

struct ProductView {
  long long m, n, k, batches;
  // K is runs of this many elements that lie `element` apart: all of it, or the channels of a tap.
  long long run;
  // kMatrices: rows are those of matrices, `pixel` apart, and of B only `batch`, `image` and `element` count.
  // kConvolution: rows of A, C and D are output pixels, those of A under a filter; products are groups of channels.
  // kGradientOfX: the same, but rows are pixels of x, and a run of A is the pixel of y that they meet under a tap.
  // kGradientOfW: rows are filters, columns channels of x, runs single pixels of y; products are taps of groups.
  // kGroups: as kMatrices, but rows of A, C and D are those of all products, each of which has a range of them.
  enum Kind { kMatrices, kConvolution, kGradientOfX, kGradientOfW, kGroups };
  int kind;
  // Depth, height, width. `output`: pixels of D, or of y for the gradient of w. `input`: those of A, or of x.
  unsigned filter[3], output[3];
  long long input[3], before[3], stride[3], dilation[3];
  OperandPlace a, b, c, d;

  // As kernels take them. They are floats, and not doubles of floats: g++ 12.2 at -O2 drops the rounding of two adjacent
  // doubles to f32 and back.
  float alpha, beta;
  int bias_axis;        // 0: none, 1: a value for each row, 2: for each column
  long long scale_run;  // of scale factors of blocks; 0: there are none
  long long first_k;  // row of A and B at which K of the product in question begins, where products have parts of it
  long long scale_shift;  // kGroups: from the rows of A of the group in question to those of its scale factors
  long long scale_rows;   // of a matrix of A's scale factors
  int scale_packed;       // 1: they are bytes, four runs of a row of A in a word, and whole 16 of a run of columns of B
  int scale_shared;       // 1: those of A of all products are one matrix
  int scale_by_row;       // 1: sums have a factor for each row of A and for each column of B
  // kGroups: which rows of A, and of C and D, rows of the product are, of a_rows and d_rows; null: those of its number.
  const int *a_row_indices, *d_row_indices;
  long long a_rows, d_rows;
  int scale_blocks;     // 1, 2: both operands' are for each row and run, in blocks of 128 rows x 4 runs, or in rows
  int sparse_group;     // elements of a group of a sparse A, of which half are stored; 0: A is dense
  int sparse_wide;      // its elements have 16 or 32 bits

  // Depth, height and width of an index below their product.
  LS_BOTH static void Split(unsigned index, const unsigned* extents, unsigned* to) {
    to[2] = index % extents[2];
    index /= extents[2];
    to[1] = index % extents[1];
    to[0] = index / extents[1];
  }

  LS_BOTH unsigned Taps() const { return filter[0] * filter[1] * filter[2]; }
  LS_BOTH static long long At(const OperandPlace& of, const long long* pixel) {
    return pixel[0] * of.plane + pixel[1] * of.row + pixel[2] * of.pixel;
  }
  LS_BOTH static long long At(const OperandPlace& of, const unsigned* pixel) {
    return pixel[0] * of.plane + pixel[1] * of.row + pixel[2] * of.pixel;
  }
  // The pixel of the `input` that a pixel of the `output` meets under a tap; false if there is none.
  LS_BOTH bool Meets(unsigned pixel, unsigned tap, long long* in) const {
    unsigned out[3], at[3];
    Split(pixel, output, out);
    Split(tap, filter, at);
    for (int dim = 0; dim < 3; ++dim) {
      if (kind == kGradientOfX) {
        in[dim] = out[dim] + before[dim] - at[dim] * dilation[dim];
        if (in[dim] < 0 || in[dim] % stride[dim] != 0) return false;
        in[dim] /= stride[dim];
      } else {
        in[dim] = out[dim] * stride[dim] - before[dim] + at[dim] * dilation[dim];
      }
      if (in[dim] < 0 || in[dim] >= input[dim]) return false;
    }
    return true;
  }

  // The row of A, or of C and D, that row i of the product is; -1: none.
  LS_BOTH static long long IndexedRow(const int* indices, long long rows, long long i) {
    if (indices == 0) return i;
    return indices[i] < 0 || indices[i] >= rows ? -1 : indices[i];
  }
  LS_BOTH long long RowOfA(long long i) const { return IndexedRow(a_row_indices, a_rows, i); }
  LS_BOTH long long StoredRowOfD(long long i) const { return IndexedRow(d_row_indices, d_rows, i); }

  // The first element of a run of a row of A, or -1 if it lies outside of the image, or of A, and counts as zeros. Rows
  // and runs are below 2^31, so they are decomposed in 32 bits.
  LS_BOTH long long LeftStart(long long product, long long i, unsigned run_index) const {
    if (OfMatrices()) {
      i = RowOfA(i);
      if (i < 0) return -1;
    }
    if (OfMatrices()) return product * a.batch + i * a.pixel + first_k * a.element;
    const unsigned pixels = output[0] * output[1] * output[2];
    long long in[3];
    if (kind == kGradientOfW) {
      // A run without a pixel of x counts as zeros, too.
      if (!Meets(run_index % pixels, (unsigned)product % Taps(), in)) return -1;
      unsigned out[3];
      Split(run_index % pixels, output, out);
      return (unsigned)product / Taps() * a.batch + i + run_index / pixels * a.image + At(a, out);
    }
    if (!Meets((unsigned)i % pixels, run_index, in)) return -1;
    return product * a.batch + (unsigned)i / pixels * a.image + At(a, in);
  }
  // The first element of a run of a column of B.
  LS_BOTH long long RightStart(long long product, long long j, unsigned run_index) const {
    if (kind == kGradientOfW) {
      const unsigned pixels = output[0] * output[1] * output[2];
      long long in[3];
      if (!Meets(run_index % pixels, (unsigned)product % Taps(), in)) return 0;  // multiplied by a zero of A
      return (unsigned)product / Taps() * b.batch + j + run_index / pixels * b.image + At(b, in);
    }
    const long long start = product * b.batch + j * b.image;
    if (OfMatrices()) return start + first_k * b.element;
    unsigned at[3];
    Split(run_index, filter, at);
    return start + At(b, at);
  }
  // Of a sparse A: the byte of the metadata that has the code of element q of row i, and how far up in it. 128 rows and
  // 32 groups have 2048 bytes: 16 for each of 128 lanes, in four words, a word for eight groups of wide elements. A group
  // is 4 elements, or 2 of tf32, or 4 pairs of those of four bits.
  LS_BOTH long long CodeByte(long long product, long long i, long long q, int* shift) const {
    const long long depth = 32 * sparse_group, blocks = (k + depth - 1) / depth, row_blocks = (m + 127) / 128;
    const long long block = (product * blocks + q / depth) * row_blocks + i / 128;
    const long long group = q % depth / sparse_group, row = i % 128;
    long long lane = row, bit = 4 * group;
    if (sparse_wide) {
      lane = row / 16 * 16 + group % 8 / 4 * 8 + row % 8;
      bit = group / 8 * 32 + row % 16 / 8 * 16 + group % 4 * 4;
    }
    *shift = (int)(bit % 8);
    return block * 2048 + lane * 16 + bit / 8;
  }
  // The index of element q among those stored of a row, or -1 if it is not stored: then it is zero.
  LS_BOTH long long StoredIndex(int code, long long q) const {
    const int at = (int)(q % sparse_group), first = code & 3, second = code >> 2;
    if (sparse_group == 2) return at == first / 2 ? q / 2 : -1;
    if (sparse_group == 8) return at / 2 == first ? q / 8 * 4 + at % 2 : at / 2 == second ? q / 8 * 4 + 2 + at % 2 : -1;
    return at == first ? q / 4 * 2 : at == second ? q / 4 * 2 + 1 : -1;
  }
  // The element of C or D.
  LS_BOTH long long Stored(const OperandPlace& of, long long product, long long i, long long j) const {
    if (kind == kGradientOfW) {
      unsigned at[3];
      Split((unsigned)product % Taps(), filter, at);
      return (unsigned)product / Taps() * of.batch + i * of.image + At(of, at) + j;
    }
    const long long start = product * of.batch + j * of.element;
    if (OfMatrices()) return start + i * of.pixel;
    const unsigned pixels = output[0] * output[1] * output[2];
    unsigned out[3];
    Split((unsigned)i % pixels, output, out);
    return start + (unsigned)i / pixels * of.image + At(of, out);
  }

  // Row and column of D by its tensor's indices, for a product with `columns` of them.
  LS_BOTH bool OfMatrices() const { return kind == kMatrices || kind == kGroups; }
  LS_BOTH bool RowsArePixels() const { return kind == kConvolution || kind == kGradientOfX; }
  LS_BOTH long long RowOfD(long long product, long long i) const {
    if (kind == kGradientOfW) return (product / Taps() * m + i) * Taps() + product % Taps();
    return RowsArePixels() || kind == kGroups ? i : product * m + i;
  }
  LS_BOTH long long ColumnOfD(long long product, long long j, long long columns) const {
    return RowsArePixels() ? product * columns + j : j;
  }
  LS_BOTH long long ColumnsOfD(long long columns) const { return RowsArePixels() ? columns * batches : columns; }

  // Scale factors of blocks.
  LS_BOTH long long Runs(long long extent) const { return (extent + scale_run - 1) / scale_run; }
  // Of row or column i, of `rows` of them; blocks have 512 bytes.
  LS_BOTH long long BlockScale(long long product, long long rows, long long i, long long q) const {
    const long long factor = q / scale_run, blocks = (Runs(k) + 3) / 4;
    if (scale_blocks == 2) return (product * rows + i) * Runs(k) + factor;
    const long long block = (product * ((rows + 127) / 128) + i / 128) * blocks + factor / 4;
    return block * 512 + i % 32 * 16 + i % 128 / 32 * 4 + factor % 4;
  }
  // Row i of the scale factors; those of all groups are of one matrix, or each has one of fewer rows. REQUIRES: of rows
  // that an index vector names, A has the row.
  LS_BOTH long long LeftScale(long long product, long long i, long long q) const {
    const long long matrix = scale_shared ? 0 : product;
    i = a_row_indices == 0 ? i + scale_shift : RowOfA(i);
    if (scale_blocks) return BlockScale(matrix, m, i, q);
    const long long run_of_k = q / scale_run;
    if (scale_packed) return ((matrix * ((Runs(k) + 3) / 4) + run_of_k / 4) * scale_rows + i) * 4 + run_of_k % 4;
    return (matrix * Runs(k) + q / scale_run) * scale_rows + i;
  }
  LS_BOTH long long RightScale(long long product, long long q, long long j) const {
    if (scale_blocks) return BlockScale(product, n, j, q);
    if (scale_packed) return (product * Runs(n) + j / scale_run) * ((Runs(k) + 15) / 16 * 16) + q / scale_run;
    return (product * Runs(n) + j / scale_run) * Runs(k) + q / scale_run;
  }
};

// Scale factors; null if there are none.
struct ScalePointers {
  const void* a;  // of blocks
  const void* b;
  const float* tensor_a;  // of all of A
  const float* tensor_b;
  const float* d;
};

// The parameters of the device's reference; void on the host. `epilogue` and `totals` are by operand.
template <typename A, typename B, typename C, typename D, typename Bias>
struct CheckArguments {
  ProductView at;
  const A* a;
  const B* b;
  const C* c;
  const D* d;
  const Bias* bias;
  const unsigned char* metadata;  // of a sparse A
  ScalePointers scales;
  void* epilogue[8];
  double* totals[8];
};

// What the kernel of sums computes: `rows` rows of one product, row-major, n columns each.
struct SumsPart {
  long long batch, first_row, rows;
  double *sums, *magnitudes;
};

// Its results.
struct CheckTotals {
  double error_squares, reference_squares, rounding_squares;
  long long compared, not_finite, first_not_finite;
};

}  // namespace laneshift::measure

#endif
