// Sums in double precision for the host to judge: those of some rows of one product, in the order in which columns are
// joined. NVRTC compiles it after measure/reference/reference_operands.cuh.
extern "C" __global__ void __launch_bounds__(256) Sums(const __grid_constant__ View view, const SumsPart part) {
  const long long n = view.at.n, end = part.first_row + part.rows;
  const long long tiles_m = (part.rows + 63) / 64, tiles_n = (n + 63) / 64;
  for (long long tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
    const long long row0 = part.first_row + tile / tiles_n * 64, column0 = tile % tiles_n * 64;
    double sum[4][4] = {}, magnitude[4][4] = {};
    SumTile<true>(view, part.batch, row0, column0, sum, magnitude);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const long long row = row0 + RowOfPart(i), column = column0 + ColumnOfPart(j);
        if (row >= end || column >= n) continue;
        const long long index = (row - part.first_row) * n + column;
        part.sums[index] = sum[i][j];
        part.magnitudes[index] = magnitude[i][j];
      }
    }
  }
}
