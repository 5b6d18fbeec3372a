// The convolution of images of few channels, which have their padding: of the pixels that a row of the kernel sees,
// side by side in memory, and the kernel, [kh, kw, c, o], one product for each row of the result.

namespace {

// `apart`: from the pixel that one pixel of the result begins at to that of the next.
template <long apart>
void convolve_row(const scalar* x, const Order& seen, const scalar* weight, const scalar* start, scalar* out, long ow,
                  long o) {
  for (long panel = 0; panel < o; panel += width)
    product<apart, Start::row>(ow, x, seen, weight + panel, o, out + panel, o, start + panel);
}

}  // namespace

// x [n, h, w, c]; `start`, o values that sums begin with; out [n, oh, ow, o], o whole pairs of vectors.
extern "C" void kernel(const scalar* x, const scalar* weight, const scalar* start, scalar* out, long n, long h, long w,
                       long c, long oh, long ow, long o, long kh, long kw, long stride_down, long stride, long threads) {
  const Order seen{kh, w * c, kw * c, 1};
  const auto convolve = stride * c == 1   ? convolve_row<1>
                        : stride * c == 2 ? convolve_row<2>
                        : stride * c == 3 ? convolve_row<3>
                        : stride * c == 4 ? convolve_row<4>
                                          : convolve_row<6>;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const long me = omp_get_thread_num(), all = omp_get_num_threads();
    for (long row = n * oh * me / all; row < n * oh * (me + 1) / all; row++)
      convolve(x + (row / oh * h + row % oh * stride_down) * w * c, seen, weight, start, out + row * ow * o, ow, o);
  }
}
