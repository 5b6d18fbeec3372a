// The convolution of padded images with few channels. The pixels under one kernel row are contiguous in memory, so
// each row of the result is a product of them with the kernel [kh, kw, c, o].

namespace {

// `stride`: values between the first pixels under the kernel of two neighbouring results.
template <long stride>
void convolve_row(const scalar* x, const Sum& sum, const scalar* weight, const scalar* start, scalar* out, long ow,
                  long o) {
  for (long panel = 0; panel < o; panel += width)
    product<2, stride, Start::row>(ow, x, weight + panel, sum, out + panel, o, start + panel);
}

}  // namespace

// x [n, h, w, c]; start [o], the initial value of the sums; out [n, oh, ow, o], with o a multiple of `width`.
extern "C" void kernel(const scalar* x, const scalar* weight, const scalar* start, scalar* out, long n, long h, long w,
                       long c, long oh, long ow, long o, long kh, long kw, long stride_down, long stride,
                       long threads) {
  const Sum sum{kh, kw * c, w * c, 1, kw * c * o, o};
  const auto convolve = stride * c == 1   ? convolve_row<1>
                        : stride * c == 2 ? convolve_row<2>
                        : stride * c == 3 ? convolve_row<3>
                        : stride * c == 4 ? convolve_row<4>
                                          : convolve_row<6>;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const long me = omp_get_thread_num(), all = omp_get_num_threads();
    for (long row = n * oh * me / all; row < n * oh * (me + 1) / all; row++)
      convolve(x + (row / oh * h + row % oh * stride_down) * w * c, sum, weight, start, out + row * ow * o, ow, o);
  }
}
