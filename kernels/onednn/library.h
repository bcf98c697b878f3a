// What differs between the versions of oneDNN that can be used: 2.6 and 3.x.
#ifndef KINGLET_KERNELS_ONEDNN_LIBRARY_H_
#define KINGLET_KERNELS_ONEDNN_LIBRARY_H_

#include <omp.h>

#include <dnnl.hpp>

namespace kinglet::onednn {

// Where one lives, the library uses the calling thread and no other. The caller's own setting of
// OpenMP is back afterwards.
class OneThread {
 public:
  OneThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

// Float32 and nothing less, whatever the environment says; memory for scratch is the caller's.
inline dnnl::primitive_attr StrictAttributes() {
  dnnl::primitive_attr attributes;
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// y [count, rows] = x [count, cols] * weight [rows, cols] transposed. Written as a convolution of
// one pixel, since that is what has fast kernels on every instruction set (AVX2 has none for inner
// products that keep a weight as it was laid out). The library chooses the weight's layout.
inline dnnl::convolution_forward::primitive_desc DescribeProduct(const dnnl::engine& engine,
                                                                 dnnl::memory::dim count,
                                                                 dnnl::memory::dim rows,
                                                                 dnnl::memory::dim cols) {
  using dnnl::memory;
  using Tag = memory::format_tag;
  constexpr auto kFloat = memory::data_type::f32;
  constexpr auto kForward = dnnl::prop_kind::forward_inference;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const memory::desc x({1, cols, count, 1}, kFloat, Tag::nhwc);
  const memory::desc weight({rows, cols, 1, 1}, kFloat, Tag::any);
  const memory::desc y({1, rows, count, 1}, kFloat, Tag::nhwc);
  const memory::dims ones{1, 1}, zeros{0, 0};
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kForward, kAlgorithm, x, weight, y, ones, zeros, zeros, StrictAttributes()};
#else
  return {{kForward, kAlgorithm, x, weight, y, ones, zeros, zeros}, StrictAttributes(), engine};
#endif
}

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_LIBRARY_H_
