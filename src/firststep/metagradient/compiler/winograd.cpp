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
// Before it stands products.cpp.

namespace {

constexpr long cache = 1 << 19;  // bytes of what a thread works on: a part of what its second cache holds
constexpr long fewest_tiles = 48;  // at a time: each time, the kernel's transform comes from memory

long tiles_at_once(long channels, long entries, long most) {
  const long fit = cache / (entries * channels * static_cast<long>(sizeof(scalar)));
  return std::min(most, std::max(fit, fewest_tiles));
}

// From one entry of the transforms of some tiles to the next. A vector more than they have: at a distance of a
// power of two, all 16 would compete for the same places in the cache.
constexpr long entry_size(long tiles, long channels) { return tiles * channels + lanes; }

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
