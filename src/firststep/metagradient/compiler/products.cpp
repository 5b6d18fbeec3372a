// Matrix products for convolutions, which read both factors where they are in memory. A tile of the result stays in
// registers while the rows of the factors pass. `scalar` is defined before this text, as float or double.

#include <algorithm>
#include <cstdint>
#include <memory>

namespace {

using Vec = at::vec::Vectorized<scalar>;
constexpr long lanes = Vec::size();
constexpr long width = 2 * lanes;  // columns of a tile
// Rows of a tile: with two vectors per row, the sums fill the registers.
constexpr long height = sizeof(Vec) == 64 ? 14 : 6;

// Return a buffer that is kept between calls: fresh pages would take longer than the computation in them.
scalar* scratch(int which, long size) {
  struct Buffer {
    std::unique_ptr<scalar[]> memory;
    long size = 0;
  };
  static thread_local Buffer buffers[2];
  Buffer& buffer = buffers[which];
  if (buffer.size < size) {
    buffer.size = 0;
    buffer.memory.reset();
    buffer.memory.reset(new scalar[size + lanes]);
    buffer.size = size;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.memory.get());
  return reinterpret_cast<scalar*>((address + sizeof(Vec) - 1) / sizeof(Vec) * sizeof(Vec));
}

// The sum over k of a product runs over `blocks` blocks of `rows` rows. Each factor has a stride between blocks and
// a stride between the rows of a block.
struct Sum {
  long blocks, rows, a_block, a_row, b_block, b_row;
};

// The initial value of the sums: zero, the values in `out`, or one row of values for all rows.
enum class Start { zero, out, row };

// Compute M rows and N vectors of columns of out[m, :] = Σ_k a[k, m] b[k, :]. `stride` is that of m in a.
template <int M, int N, long stride, Start start>
void tile(const scalar* a, const scalar* b, const Sum& sum, scalar* out, long out_row, const scalar* row_values) {
  // Arrays and loops throughout: GCC 12 keeps these sums in memory if they are single variables.
  Vec sums[M][N];
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 2
    for (int n = 0; n < N; n++)
      sums[m][n] = start == Start::zero  ? Vec(scalar(0))
                   : start == Start::out ? Vec::loadu(out + m * out_row + n * lanes)
                                         : Vec::loadu(row_values + n * lanes);
  const long blocks = sum.blocks, rows = sum.rows, a_block = sum.a_block, b_block = sum.b_block;
  const long a_row = sum.a_row, b_row = sum.b_row;
  for (long block = 0; block < blocks; block++, a += a_block, b += b_block) {
    const scalar* left = a;
    const scalar* right = b;
    for (long row = 0; row < rows; row++, left += a_row, right += b_row) {
      Vec values[N];
#pragma GCC unroll 2
      for (int n = 0; n < N; n++) values[n] = Vec::loadu(right + n * lanes);
#pragma GCC unroll 16
      for (int m = 0; m < M; m++) {
        const Vec factor(left[m * stride]);
#pragma GCC unroll 2
        for (int n = 0; n < N; n++) sums[m][n] = at::vec::fmadd(factor, values[n], sums[m][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 2
    for (int n = 0; n < N; n++) sums[m][n].store(out + m * out_row + n * lanes);
}

// Compute a tile of `rows` rows, at most M.
template <int M, int N, long stride, Start start>
void tile_of(long rows, const scalar* a, const scalar* b, const Sum& sum, scalar* out, long out_row,
             const scalar* row_values) {
  if constexpr (M > 0) {
    if (rows == M)
      tile<M, N, stride, start>(a, b, sum, out, out_row, row_values);
    else
      tile_of<M - 1, N, stride, start>(rows, a, b, sum, out, out_row, row_values);
  }
}

// Compute any number of rows and N vectors of columns, in tiles of about the same height.
template <int N, long stride, Start start>
void product(long rows, const scalar* a, const scalar* b, const Sum& sum, scalar* out, long out_row,
             const scalar* row_values = nullptr) {
  const long parts = (rows + height - 1) / height;
  for (long part = 0; part < parts; part++) {
    const long from = rows * part / parts, until = rows * (part + 1) / parts;
    tile_of<height, N, stride, start>(until - from, a + from * stride, b, sum, out + from * out_row, out_row,
                                      row_values);
  }
}

}  // namespace
