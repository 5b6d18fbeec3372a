// The gradient of a convolution in its kernel. Entry (a, b) of the kernel is a matrix [c, o], the sum over all pixels
// (i, j) of the cotangent g of  x[i stride + a - padding, j stride + b - padding] g[i, j]ᵀ.  Channels are innermost
// in x and g, so nothing is packed. A band of pixels stays in the cache while the tiles of the matrix pass. Threads
// divide kernel entries and blocks of output channels but never a sum, so results do not depend on the thread count.
//
// products.cpp stands before this text.

namespace {

constexpr long cache = 1 << 17;  // bytes of a band: a part of a core's L2 cache
constexpr long pixels_at_once = 48;  // per tile: enough to make loading and storing it negligible

// Along one axis: the pixels of the cotangent whose pixel of the image is not in the padding.
struct Range {
  long from, until;
};

inline Range inside(long entry, long padding, long stride, long size, long out) {
  const long before = padding - entry, last = size - 1 + before;
  return {before > 0 ? (before + stride - 1) / stride : 0, last < 0 ? 0 : std::min(out, last / stride + 1)};
}

}  // namespace

// x [n, h, w, c], whose pixels may overlap in memory; g [n, oh, ow, o], with o a multiple of `lanes`; out
// [kh, kw, c, o], filled with zeros.
extern "C" void kernel(const scalar* x, const scalar* g, scalar* out, long n, long h, long w, long c, long x_image,
                       long x_row, long x_column, long oh, long ow, long o, long kh, long kw, long sh, long sw, long ph,
                       long pw, long threads) {
  const long vectors = o / lanes, blocks = (vectors + 1) / 2, units = kh * kw * blocks;
  const long at_once = std::max(1l, pixels_at_once / ow);
  const long row_bytes = sizeof(scalar) * (sh * x_row + ow * o);
  const long band = std::max(1l, cache / (row_bytes * at_once)) * at_once;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const long me = omp_get_thread_num(), all = omp_get_num_threads();
    const long first_unit = units * me / all, end_unit = units * (me + 1) / all;
    for (long image = 0; image < n; image++)
      for (long top = 0; top < oh; top += band)
        for (long unit = first_unit; unit < end_unit; unit++) {
          const long entry = unit / blocks, a = entry / kw, b = entry % kw, first = unit % blocks * 2;
          const Range rows = inside(a, ph, sh, h, oh), columns = inside(b, pw, sw, w, ow);
          const long end = std::min(rows.until, top + band), length = columns.until - columns.from;
          for (long i = std::max(rows.from, top); i < end; i += at_once) {
            const long count = std::min(at_once, end - i);
            const long up = i * sh + a - ph, left = columns.from * sw + b - pw;
            const scalar* pixels = x + image * x_image + up * x_row + left * x_column;
            const scalar* cotangent = g + ((image * oh + i) * ow + columns.from) * o + first * lanes;
            const Sum sum{count, length, sh * x_row, sw * x_column, ow * o, o};
            scalar* sums = out + entry * c * o + first * lanes;
            if (first + 2 <= vectors)
              product<2, 1, Start::out>(c, pixels, cotangent, sum, sums, o);
            else
              product<1, 1, Start::out>(c, pixels, cotangent, sum, sums, o);
          }
        }
  }
}
