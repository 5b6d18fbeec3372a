// The gradient of a convolution in its kernel, directly: entry (a, b) of the kernel is the sum over all pixels
// (i, j) of the cotangent g of  x[i stride + a - padding, j stride + b - padding] g[i, j]ᵀ,  a matrix [c, o].
// Channels are innermost in both, so that nothing has to be packed: a tile of the matrix stays in registers
// while pixels pass, and a band of pixels stays in the cache while tiles pass. Entries and blocks of output
// channels are divided between threads, never sums: the result does not depend on their number.
//
// Before this text stands the definition of `scalar`, float or double.

#include <algorithm>

namespace {

using Vec = at::vec::Vectorized<scalar>;
constexpr int lanes = Vec::size();
// Of input channels: with two vectors of output channels each, as many sums as there are registers for.
constexpr int height = sizeof(Vec) == 64 ? 14 : 6;
constexpr long cache = 1 << 17;  // bytes of a band: a part of what a core's second cache holds
constexpr long pixels_at_once = 48;  // from which on loading and storing a tile does not count

// Where pixels are, and how far it is from one to the next.
struct Pixels {
  const scalar* first;
  long row, column;
};

// Add to M rows and N vectors of columns of `out`.
template <int M, int N>
inline void tile(Pixels x, Pixels g, long rows, long columns, scalar* out, long out_row) {
  Vec sums[M][N];
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 4
    for (int n = 0; n < N; n++) sums[m][n] = Vec::loadu(out + m * out_row + n * lanes);
  for (long i = 0; i < rows; i++) {
    const scalar* a = x.first + i * x.row;
    const scalar* b = g.first + i * g.row;
    for (long j = 0; j < columns; j++, a += x.column, b += g.column) {
      Vec against[N];
#pragma GCC unroll 4
      for (int n = 0; n < N; n++) against[n] = Vec::loadu(b + n * lanes);
#pragma GCC unroll 16
      for (int m = 0; m < M; m++) {
        const Vec value(a[m]);
#pragma GCC unroll 4
        for (int n = 0; n < N; n++) sums[m][n] = at::vec::fmadd(value, against[n], sums[m][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < M; m++)
#pragma GCC unroll 4
    for (int n = 0; n < N; n++) sums[m][n].store(out + m * out_row + n * lanes);
}

// `rows` input channels, at most M.
template <int M, int N>
inline void tile_of(long rows, Pixels x, Pixels g, long lines, long columns, scalar* out, long out_row) {
  if constexpr (M > 0) {
    if (rows == M)
      tile<M, N>(x, g, lines, columns, out, out_row);
    else
      tile_of<M - 1, N>(rows, x, g, lines, columns, out, out_row);
  }
}

// All input channels, in parts of about the same height, and N vectors of output channels.
template <int N>
inline void column(Pixels x, Pixels g, long lines, long columns, long channels, scalar* out, long out_row) {
  const long parts = (channels + height - 1) / height;
  for (long part = 0; part < parts; part++) {
    const long from = channels * part / parts, until = channels * (part + 1) / parts;
    tile_of<height, N>(until - from, {x.first + from, x.row, x.column}, g, lines, columns, out + from * out_row, out_row);
  }
}

// Along one side: the pixels of the cotangent whose pixel of the image is not in the padding.
struct Range {
  long from, until;
};

inline Range inside(long entry, long padding, long stride, long size, long out) {
  const long before = padding - entry, last = size - 1 + before;
  return {before > 0 ? (before + stride - 1) / stride : 0, last < 0 ? 0 : std::min(out, last / stride + 1)};
}

}  // namespace

// Images x [n, h, w, c], whose pixels may overlap in memory, and g [n, oh, ow, o], o whole vectors; `out`, zeros,
// [kh, kw, c, o].
extern "C" void kernel(const scalar* x, const scalar* g, scalar* out, long n, long h, long w, long c, long x_image,
                       long x_row, long x_column, long oh, long ow, long o, long kh, long kw, long sh, long sw, long ph,
                       long pw, long threads) {
  const long vectors = o / lanes, blocks = (vectors + 1) / 2, units = kh * kw * blocks;
  const long at_once = std::max(1l, pixels_at_once / ow);
  const long of_row = sizeof(scalar) * (sh * x_row + ow * o);
  const long band = std::max(1l, cache / (of_row * at_once)) * at_once;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const long me = omp_get_thread_num(), all = omp_get_num_threads();
    const long mine = units * me / all, theirs = units * (me + 1) / all;
    for (long image = 0; image < n; image++)
      for (long top = 0; top < oh; top += band)
        for (long unit = mine; unit < theirs; unit++) {
          const long entry = unit / blocks, a = entry / kw, b = entry % kw, first = unit % blocks * 2;
          const Range rows = inside(a, ph, sh, h, oh), columns = inside(b, pw, sw, w, ow);
          const long end = std::min(rows.until, top + band), length = columns.until - columns.from;
          for (long i = std::max(rows.from, top); i < end; i += at_once) {
            const long count = std::min(at_once, end - i);
            const long up = i * sh + a - ph, left = columns.from * sw + b - pw;
            const Pixels from{x + image * x_image + up * x_row + left * x_column, sh * x_row, sw * x_column};
            const Pixels against{g + ((image * oh + i) * ow + columns.from) * o + first * lanes, ow * o, o};
            scalar* sums = out + entry * c * o + first * lanes;
            if (first + 2 <= vectors)
              column<2>(from, against, count, length, c, sums, o);
            else
              column<1>(from, against, count, length, c, sums, o);
          }
        }
  }
}
