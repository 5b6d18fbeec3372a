namespace {

// Compute Bᵀ d B of some tiles as [16, channels / lanes, tiles, lanes], in which product rows have a fixed stride.
void transform_images(const Images& images, long first, long tiles, scalar* out) {
  const long entry_stride = entry_size(tiles, images.channels);
  Place at = place(images, first);
  for (long t = 0; t < tiles; t++, advance(images, at)) {
    const scalar* pixels[4][4];
    find_pixels<4>(images, at, 1, pixels);
    for (long c = 0; c < images.channels; c += lanes) {
      scalar* to = out + c * tiles + t * lanes;
      Vec columns[4][4], rows[4][4], v[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        Vec d[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) d[i] = Vec::loadu(pixels[i][j] + c);
        transform_input(d, columns[j]);
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) rows[i][j] = columns[j][i];
        transform_input(rows[i], v);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) v[j].store(to + (4 * i + j) * entry_stride);
      }
    }
  }
}

// Compute Y = Aᵀ m A plus the bias of some tiles, m [16, tiles, o], into the pixels of the result.
void transform_products(const scalar* m, long first, long tiles, scalar* out, const Images& shape, const scalar* bias) {
  const long o = shape.channels, entry_stride = entry_size(tiles, o);
  Place at = place(shape, first);
  for (long t = 0; t < tiles; t++, advance(shape, at)) {
    const bool right = at.column + 1 < shape.w, below = at.row + 1 < shape.h;
    scalar* to = out + ((at.image * shape.h + at.row) * shape.w + at.column) * o;
    for (long c = 0; c < o; c += lanes) {
      const scalar* entry = m + t * o + c;
      Vec s[2][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        Vec column[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) column[i] = Vec::loadu(entry + (4 * i + j) * entry_stride);
        s[0][j] = column[0] + column[1] + column[2];
        s[1][j] = column[1] - column[2] - column[3];
      }
      const Vec b = bias ? Vec::loadu(bias + c) : Vec(scalar(0));
      (s[0][0] + s[0][1] + s[0][2] + b).store(to + c);
      if (right) (s[0][1] - s[0][2] - s[0][3] + b).store(to + o + c);
      if (below) (s[1][0] + s[1][1] + s[1][2] + b).store(to + shape.w * o + c);
      if (below && right) (s[1][1] - s[1][2] - s[1][3] + b).store(to + (shape.w + 1) * o + c);
    }
  }
}

// A kernel in memory. Negative strides rotate it by 180 degrees.
struct Kernel {
  const scalar* first;
  long output, input, row, column;
};

// Compute G g Gᵀ of `width` output channels and all input channels: [16, o / width, c, width].
void transform_kernel(Kernel kernel, long o, long outputs, long channels, scalar* out) {
  const long entry_stride = outputs * channels;
  const Vec half(scalar(0.5));
  for (long c = 0; c < channels; c++)
    for (long part = 0; part < width; part += lanes) {
      alignas(64) scalar g[9][lanes];
      const scalar* from = kernel.first + (o + part) * kernel.output + c * kernel.input;
      for (long lane = 0; lane < lanes; lane++, from += kernel.output)
#pragma GCC unroll 9
        for (int entry = 0; entry < 9; entry++)
          g[entry][lane] = from[entry / 3 * kernel.row + entry % 3 * kernel.column];
      Vec u[4][3];
#pragma GCC unroll 3
      for (int j = 0; j < 3; j++) {
        const Vec g0 = Vec::loadu(g[j]), g1 = Vec::loadu(g[3 + j]), g2 = Vec::loadu(g[6 + j]);
        u[0][j] = g0;
        u[1][j] = half * (g0 + g2 + g1);
        u[2][j] = half * (g0 + g2 - g1);
        u[3][j] = g2;
      }
      scalar* to = out + o * channels + c * width + part;
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++, to += 4 * entry_stride) {
        const Vec sum = u[i][0] + u[i][2];
        u[i][0].store(to);
        (half * (sum + u[i][1])).store(to + entry_stride);
        (half * (sum - u[i][1])).store(to + 2 * entry_stride);
        u[i][2].store(to + 3 * entry_stride);
      }
    }
}

}  // namespace

// x [n, h, w, c]; weight [o, c, 3, 3] with any strides; out [n, h, w, o]; c and o are multiples of `width`.
extern "C" void kernel(const scalar* x, const scalar* weight, const scalar* bias, scalar* out, long n, long h, long w,
                       long c, long o, long offset, long output_stride, long input_stride, long row_stride,
                       long column_stride, long has_bias, long threads) {
  const Kernel strided{weight + offset, output_stride, input_stride, row_stride, column_stride};
  const std::unique_ptr<scalar[]> zeros(new scalar[c]());
  const Images images{x, h, w, c, zeros.get()}, results{out, h, w, o, nullptr};
  const long tiles = n * images.across() * images.down(), panels = o / width;
  const long most = tiles_at_once(c + o, 16, (tiles + threads - 1) / threads);
  const long image_size = 16 * entry_size(most, c), thread_size = image_size + 16 * entry_size(most, o);
  scalar* u = scratch(0, 16 * c * o);
  scalar* all_threads = scratch(1, threads * thread_size);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const long me = omp_get_thread_num(), all = omp_get_num_threads();
    for (long panel = panels * me / all; panel < panels * (me + 1) / all; panel++)
      transform_kernel(strided, panel * width, o, c, u);
#pragma omp barrier
    const long start = tiles * me / all, count = tiles * (me + 1) / all - start, chunks = (count + most - 1) / most;
    scalar* v = all_threads + me * thread_size;
    scalar* m = v + image_size;
    for (long chunk = 0; chunk < chunks; chunk++) {
      const long first = start + count * chunk / chunks, some = start + count * (chunk + 1) / chunks - first;
      const Sum sum{c / lanes, lanes, some * lanes, 1, lanes * width, width};
      transform_images(images, first, some, v);
      for (long entry = 0; entry < 16; entry++)
        for (long panel = 0; panel < panels; panel++)
          product<2, lanes, Start::zero>(some, v + entry * entry_size(some, c),
                                         u + entry * c * o + panel * width * c, sum,
                                         m + entry * entry_size(some, o) + panel * width, o);
      transform_products(m, first, some, out, results, has_bias ? bias : nullptr);
    }
  }
}
