// 3 x 3 convolutions with padding 1 by Winograd's algorithm F(2 x 2, 3 x 3) (Lavin and Gray, CVPR 2016). A tile of
// four result pixels takes 16 multiplications where sums of products take 36.
//
//     Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A      with d the 4 x 4 pixels under a tile, g the kernel and Y the 2 x 2 result
//
//     Bᵀ = 1  0 -1  0      G = 1    0   0        Aᵀ = 1 1  1  0
//          0  1  1  0          1/2  1/2 1/2           0 1 -1 -1
//          0 -1  1  0          1/2 -1/2 1/2
//          0  1  0 -1          0    0   1
//
// Over channels, ⊙ is one matrix product [tiles, c] [c, o] per entry, 16 in all. Channels are innermost in all
// images. The working set of a thread stays in its cache. Threads divide tiles, or entries of a gradient, but never a
// sum, so results do not depend on the thread count.
//
// The convolution (winograd_convolution.cpp) and the kernel gradient (winograd_gradient.cpp) share this file.
// products.cpp stands before it.

namespace {

constexpr long cache = 1 << 19;  // bytes of a thread's working set: a part of its L2 cache
constexpr long fewest_tiles = 48;  // at a time: the kernel's transform is read from memory each time

long tiles_at_once(long channels, long entries, long most) {
  const long fit = cache / (entries * channels * static_cast<long>(sizeof(scalar)));
  return std::min(most, std::max(fit, fewest_tiles));
}

// Stride between the 16 entries of the transforms of some tiles. One vector more than their size: at a power of two
// all entries would compete for the same cache lines.
constexpr long entry_size(long tiles, long channels) { return tiles * channels + lanes; }

// Images [n, h, w, channels], and their number of tiles across and down.
struct Images {
  const scalar* first;
  long h, w, channels;
  const scalar* outside;  // zeros: the pixels outside the image
  long across() const { return (w + 1) / 2; }
  long down() const { return (h + 1) / 2; }
};

struct Place {
  long image, row, column;
};

// Return the place of a tile: that of its first result pixel.
inline Place place(const Images& images, long tile) {
  const long line = tile / images.across();
  return {line / images.down(), line % images.down() * 2, tile % images.across() * 2};
}

// Move to the next tile, without a division.
inline void advance(const Images& images, Place& at) {
  if ((at.column += 2) < images.w) return;
  at.column = 0;
  if ((at.row += 2) < images.h) return;
  at.row = 0;
  at.image++;
}

// Find the addresses of size x size pixels. The first is `before` pixels above and to the left of the place.
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

// Row `number` of Bᵀ d, or column `number` of d B.
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
