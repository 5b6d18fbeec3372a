// Products of matrices whose entries lie in memory as convolutions need them: a tile of the result stays in registers
// while entries pass. Before this text stands the definition of `scalar`, float or double.

#include <algorithm>
#include <cstdint>
#include <memory>

namespace {

using Vec = at::vec::Vectorized<scalar>;
constexpr long lanes = Vec::size();
constexpr long width = 2 * lanes;  // columns of a product at a time
// Rows at a time: with two vectors each, as many sums as there are registers for.
constexpr long height = sizeof(Vec) == 64 ? 14 : 6;

// Memory that is kept from call to call: fresh pages would take longer than what is computed in them.
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

// How a matrix lies in memory of which single entries are read. Entry (k, m) is `apart` times m behind where row
// k begins: rows are `step` from one to the next, in blocks of so many rows, and blocks are `outer` apart.
struct Order {
  long blocks, outer, rows, step;
};

// What sums begin with: nothing, what is in `out`, or the same row of values for all.
enum class Start { zero, out, row };

// M rows and `width` columns of a product: Σ_k a[k, m] b[k, :].
template <int M, long apart, Start start>
void tile(const scalar* a, const Order& order, const scalar* b, long b_row, scalar* out, long out_row,
          const scalar* row_values) {
  // Loops over arrays, throughout: of single variables GCC 12 keeps these sums in memory.
  Vec sums[M][2];
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 2
    for (int n = 0; n < 2; n++)
      sums[m][n] = start == Start::zero  ? Vec(scalar(0))
                   : start == Start::out ? Vec::loadu(out + m * out_row + n * lanes)
                                         : Vec::loadu(row_values + n * lanes);
  const long step = order.step;
  for (long block = 0; block < order.blocks; block++, a += order.outer) {
    const scalar* from = a;
    for (long row = 0; row < order.rows; row++, from += step, b += b_row) {
      Vec against[2];
#pragma GCC unroll 2
      for (int n = 0; n < 2; n++) against[n] = Vec::loadu(b + n * lanes);
#pragma GCC unroll 16
      for (int m = 0; m < M; m++) {
        const Vec value(from[m * apart]);
#pragma GCC unroll 2
        for (int n = 0; n < 2; n++) sums[m][n] = at::vec::fmadd(value, against[n], sums[m][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) sums[m][n].store(out + m * out_row + n * lanes);
}

// `rows` rows, at most M.
template <int M, long apart, Start start>
void tile_of(long rows, const scalar* a, const Order& order, const scalar* b, long b_row, scalar* out, long out_row,
             const scalar* row_values) {
  if constexpr (M > 0) {
    if (rows == M)
      tile<M, apart, start>(a, order, b, b_row, out, out_row, row_values);
    else
      tile_of<M - 1, apart, start>(rows, a, order, b, b_row, out, out_row, row_values);
  }
}

// Any number of rows, in parts of about the same height.
template <long apart, Start start>
void product(long rows, const scalar* a, const Order& order, const scalar* b, long b_row, scalar* out, long out_row,
             const scalar* row_values = nullptr) {
  const long parts = (rows + height - 1) / height;
  for (long part = 0; part < parts; part++) {
    const long from = rows * part / parts, until = rows * (part + 1) / parts;
    tile_of<height, apart, start>(until - from, a + from * apart, order, b, b_row, out + from * out_row, out_row,
                                  row_values);
  }
}

}  // namespace
