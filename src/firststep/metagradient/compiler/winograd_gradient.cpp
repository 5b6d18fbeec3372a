// The kernel gradient transposes the steps of the convolution: Gᵀ [Σ (Bᵀ d B) ⊙ (A Y Aᵀ)] G, with Y the cotangent of
// a tile's result. Over channels it is one product [c, tiles] [tiles, o] per entry, 16 in all.

namespace {

// Row `number` of A Y, or column `number` of Y Aᵀ.
template <int number>
inline Vec of_result(Vec y0, Vec y1) {
  if constexpr (number == 0) return y0;
  if constexpr (number == 1) return y0 + y1;
  if constexpr (number == 2) return y0 - y1;
  return Vec(scalar(0)) - y1;
}

// Compute row `number` of Bᵀ d B for all channels of a tile: [4, tiles, channels].
template <int number>
inline void transform_images(const Images& images, const Place& at, scalar* out, long entry_stride) {
  const scalar* pixels[4][4];
  find_pixels<4>(images, at, 1, pixels);
  for (long c = 0; c < images.channels; c += lanes) {
    Vec row[4], v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      Vec d[4];  // the compiler does not load the two that are not read
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) d[i] = Vec::loadu(pixels[i][j] + c);
      row[j] = of_input<number>(d);
    }
    transform_input(row, v);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) v[j].store(out + j * entry_stride + c);
  }
}

// Compute row `number` of A Y Aᵀ for some output channels of a tile: [4, tiles, outputs].
template <int number>
inline void transform_cotangent(const Images& images, const Place& at, long output, long outputs, scalar* out,
                                long entry_stride) {
  const scalar* pixels[2][2];
  find_pixels<2>(images, at, 0, pixels);
  for (long c = 0; c < outputs; c += lanes, out += lanes) {
    Vec y[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++)
      y[j] = of_result<number>(Vec::loadu(pixels[0][j] + output + c), Vec::loadu(pixels[1][j] + output + c));
    of_result<0>(y[0], y[1]).store(out);
    of_result<1>(y[0], y[1]).store(out + entry_stride);
    of_result<2>(y[0], y[1]).store(out + 2 * entry_stride);
    of_result<3>(y[0], y[1]).store(out + 3 * entry_stride);
  }
}

// Add the contribution of some tiles to row `number` of the sum u, [16, c, o], for some output channels.
template <int number>
void add_products(const Images& x, const Images& g, long first, long tiles, long output, long outputs, scalar* v,
                  scalar* u) {
  const long x_stride = entry_size(tiles, x.channels), g_stride = entry_size(tiles, outputs);
  const Sum sum{1, tiles, 0, x.channels, 0, outputs};
  scalar* d = v + 4 * x_stride;
  Place at = place(x, first);
  for (long t = 0; t < tiles; t++, advance(x, at)) {
    transform_images<number>(x, at, v + t * x.channels, x_stride);
    transform_cotangent<number>(g, at, output, outputs, d + t * outputs, g_stride);
  }
  for (long j = 0; j < 4; j++)
    for (long c = 0; c < outputs; c += width)
      product<2, 1, Start::out>(x.channels, v + j * x_stride, d + j * g_stride + c, sum,
                                u + (4 * number + j) * x.channels * g.channels + output + c, g.channels);
}

// Compute Gᵀ u G of one input channel and a vector of output channels, u [16, c, o], into the kernels in memory.
inline void transform_sums(const scalar* u, scalar* out, long entry_stride, long kernel_stride) {
  const Vec half(scalar(0.5));
  Vec s[3][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    Vec column[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) column[i] = Vec::loadu(u + (4 * i + j) * entry_stride);
    s[0][j] = column[0] + half * (column[1] + column[2]);
    s[1][j] = half * (column[1] - column[2]);
    s[2][j] = half * (column[1] + column[2]) + column[3];
  }
  alignas(64) scalar kernel[9][lanes];
#pragma GCC unroll 3
  for (int i = 0; i < 3; i++) {
    const Vec sum = half * (s[i][1] + s[i][2]);
    (s[i][0] + sum).store(kernel[3 * i]);
    (half * (s[i][1] - s[i][2])).store(kernel[3 * i + 1]);
    (sum + s[i][3]).store(kernel[3 * i + 2]);
  }
  for (long lane = 0; lane < lanes; lane++, out += kernel_stride)
#pragma GCC unroll 9
    for (int entry = 0; entry < 9; entry++) out[entry] = kernel[entry][lane];
}

}  // namespace

// x [n, h, w, c]; g [n, h, w, o], the cotangent of the result; out [o, c, 3, 3]; c and o are multiples of `width`.
extern "C" void kernel(const scalar* x, const scalar* g, scalar* out, long n, long h, long w, long c, long o,
                       long threads) {
  const std::unique_ptr<scalar[]> zeros(new scalar[std::max(c, o)]());
  const Images images{x, h, w, c, zeros.get()}, cotangent{g, h, w, o, zeros.get()};
  const long tiles = n * images.across() * images.down(), panels = o / width;
  // A unit of work is one row of the transforms. With more than four threads it is a part of the output channels too.
  const long parts = std::max(1l, std::min(panels, threads / 4)), units = 4 * parts;
  const long most = tiles_at_once(c + o, 4, tiles);
  const long thread_size = 4 * (entry_size(most, c) + entry_size(most, o));
  scalar* u = scratch(0, 16 * c * o);
  scalar* all_threads = scratch(1, threads * thread_size);
  constexpr decltype(&add_products<0>) add[4] = {add_products<0>, add_products<1>, add_products<2>, add_products<3>};
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const long me = omp_get_thread_num(), all = omp_get_num_threads();
    for (long row = 16 * c * me / all; row < 16 * c * (me + 1) / all; row++)
      std::fill(u + row * o, u + (row + 1) * o, scalar(0));
#pragma omp barrier
    for (long first = 0; first < tiles; first += most)
      for (long unit = units * me / all; unit < units * (me + 1) / all; unit++) {
        const long part = unit % parts, output = panels * part / parts * width;
        const long outputs = panels * (part + 1) / parts * width - output;
        add[unit / parts](images, cotangent, first, std::min(most, tiles - first), output, outputs,
                          all_threads + me * thread_size, u);
      }
#pragma omp barrier
    for (long vector = o / lanes * me / all; vector < o / lanes * (me + 1) / all; vector++)
      for (long channel = 0, output = vector * lanes; channel < c; channel++)
        transform_sums(u + channel * o + output, out + (output * c + channel) * 9, c * o, c * 9);
  }
}
