// Convolutions of 3 x 3 with padding 1 by Winograd's algorithm F(2 x 2, 3 x 3) (Lavin and Gray, CVPR 2016): four
// pixels of a result at a time, with 16 multiplications where sums of products take 36.
//
//     Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A      of a tile d of 4 x 4 pixels and a kernel g; Y is 2 x 2
//
//     Bᵀ = 1  0 -1  0      G = 1    0   0        Aᵀ = 1 1  1  0
//          0  1  1  0          1/2  1/2 1/2           0 1 -1 -1
//          0 -1  1  0          1/2 -1/2 1/2
//          0  1  0 -1          0    0   1
//
// Over channels, ⊙ is a matrix product for each of the 16 entries: [tiles, c] [c, o]. Channels are innermost in
// all images. What a thread works on at a time stays in its cache. Threads divide tiles, or entries of a
// gradient, never sums: results do not depend on their number.
//
// This file has what convolution (winograd_convolution.cpp) and kernel gradient (winograd_gradient.cpp) share.
// Before it stands the definition of `scalar`, float or double.

#include <algorithm>
#include <cstdint>
#include <memory>

namespace {

using Vec = at::vec::Vectorized<scalar>;
constexpr long lanes = Vec::size();
constexpr long width = 2 * lanes;  // columns of a product at a time
// Rows at a time: with two vectors each, as many sums as there are registers for.
constexpr long height = sizeof(Vec) == 64 ? 14 : 6;
constexpr long cache = 1 << 19;  // bytes of what a thread works on: a part of what its second cache holds
constexpr long fewest_tiles = 48;  // at a time: each time, the kernel's transform comes from memory

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

long tiles_at_once(long channels, long entries, long most) {
  const long fit = cache / (entries * channels * static_cast<long>(sizeof(scalar)));
  return std::min(most, std::max(fit, fewest_tiles));
}

// From one entry of the transforms of some tiles to the next. A vector more than they have: at a distance of a
// power of two, all 16 would compete for the same places in the cache.
constexpr long entry_size(long tiles, long channels) { return tiles * channels + lanes; }

// How a matrix lies in memory of which single entries are read. Entry (k, m) is `apart` times m behind where row
// k begins: rows are `step` from one to the next, in blocks of so many rows, and blocks are `outer` apart.
struct Order {
  long blocks, outer, rows, step;
};

// M rows and `width` columns of a product, put into `out` or added to it: Σ_k a[k, m] b[k, :].
template <int M, long apart, bool add>
void tile(const scalar* a, const Order& order, const scalar* b, long b_row, scalar* out, long out_row) {
  // Loops over arrays, throughout: of single variables GCC 12 keeps these sums in memory.
  Vec sums[M][2];
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) sums[m][n] = add ? Vec::loadu(out + m * out_row + n * lanes) : Vec(scalar(0));
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
template <int M, long apart, bool add>
void tile_of(long rows, const scalar* a, const Order& order, const scalar* b, long b_row, scalar* out, long out_row) {
  if constexpr (M > 0) {
    if (rows == M)
      tile<M, apart, add>(a, order, b, b_row, out, out_row);
    else
      tile_of<M - 1, apart, add>(rows, a, order, b, b_row, out, out_row);
  }
}

// Any number of rows, in parts of about the same height.
template <long apart, bool add>
void product(long rows, const scalar* a, const Order& order, const scalar* b, long b_row, scalar* out, long out_row) {
  const long parts = (rows + height - 1) / height;
  for (long part = 0; part < parts; part++) {
    const long from = rows * part / parts, until = rows * (part + 1) / parts;
    tile_of<height, apart, add>(until - from, a + from * apart, order, b, b_row, out + from * out_row, out_row);
  }
}

// Images [n, h, w, channels] and how many tiles they have, side by side and one above the other.
struct Images {
  const scalar* first;
  long h, w, channels;
  const scalar* outside;  // zeros, for pixels that are not in the image
  long across() const { return (w + 1) / 2; }
  long down() const { return (h + 1) / 2; }
};

struct Place {
  long image, row, column;
};

// Of the first of the four pixels of the result that belong to a tile.
inline Place place(const Images& images, long tile) {
  const long line = tile / images.across();
  return {line / images.down(), line % images.down() * 2, tile % images.across() * 2};
}

// Of the next tile, without a division.
inline void advance(const Images& images, Place& at) {
  if ((at.column += 2) < images.w) return;
  at.column = 0;
  if ((at.row += 2) < images.h) return;
  at.row = 0;
  at.image++;
}

// Where size x size pixels are, of which the first is `before` pixels above and left of the place.
template <int size>
inline void find_pixels(const Images& images, const Place& at, long before, const scalar* (&pixels)[size][size]) {
  const long row = at.row - before, column = at.column - before;
  const long first = ((at.image * images.h + row) * images.w + column) * images.channels;
#pragma GCC unroll 4
  for (int i = 0; i < size; i++)
#pragma GCC unroll 4
    for (int j = 0; j < size; j++) {
      const bool inside = (row + i >= 0) & (row + i < images.h) & (column + j >= 0) & (column + j < images.w);
      pixels[i][j] = inside ? images.first + (first + (i * images.w + j) * images.channels) : images.outside;
    }
}

// A row of Bᵀ d, or a column of d B.
template <int number>
inline Vec of_input(const Vec (&d)[4]) {
  if constexpr (number == 0) return d[0] - d[2];
  if constexpr (number == 1) return d[1] + d[2];
  if constexpr (number == 2) return d[2] - d[1];
  return d[1] - d[3];
}

inline void transform_input(const Vec (&d)[4], Vec (&out)[4]) {
  out[0] = of_input<0>(d);
  out[1] = of_input<1>(d);
  out[2] = of_input<2>(d);
  out[3] = of_input<3>(d);
}

}  // namespace
