#include "bench/onednn_product.h"

#include <omp.h>

#include <dnnl.hpp>
#include <unordered_map>

namespace kinglet {
namespace {

using dnnl::inner_product_forward;
using dnnl::memory;

inner_product_forward::primitive_desc Describe(const dnnl::engine& engine, uint64_t rows,
                                               uint64_t cols, OnednnLayout layout) {
  using Tag = memory::format_tag;
  const Tag tag = layout == OnednnLayout::kAny    ? Tag::any
                  : layout == OnednnLayout::kRows ? Tag::ab
                                                  : Tag::ba;
  const auto n = static_cast<memory::dim>(rows), k = static_cast<memory::dim>(cols);
  const memory::desc x({1, k}, memory::data_type::f32, memory::format_tag::nc);
  const memory::desc weight({n, k}, memory::data_type::f32, tag);
  const memory::desc y({1, n}, memory::data_type::f32, memory::format_tag::nc);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, dnnl::prop_kind::forward_inference, x, weight, y};
#else
  return {inner_product_forward::desc(dnnl::prop_kind::forward_inference, x, weight, y), engine};
#endif
}

std::span<float> Floats(const memory& values) {
  return {static_cast<float*>(values.get_data_handle()),
          values.get_desc().get_size() / sizeof(float)};
}

}  // namespace

struct OnednnProduct::State {
  State(uint64_t rows, uint64_t cols, OnednnLayout layout)
      : engine(dnnl::engine::kind::cpu, 0),
        stream(engine),
        description(kinglet::Describe(engine, rows, cols, layout)),
        product(description),
        x(description.src_desc(), engine),
        weight(description.weights_desc(), engine),
        y(description.dst_desc(), engine) {}

  dnnl::engine engine;
  dnnl::stream stream;
  inner_product_forward::primitive_desc description;
  inner_product_forward product;
  memory x, weight, y;
};

OnednnProduct::OnednnProduct(uint64_t rows, uint64_t cols, OnednnLayout layout) {
  omp_set_num_threads(1);
  state_ = std::make_unique<State>(rows, cols, layout);
}
OnednnProduct::~OnednnProduct() = default;

std::span<float> OnednnProduct::weight() { return Floats(state_->weight); }
std::span<float> OnednnProduct::x() { return Floats(state_->x); }
std::span<const float> OnednnProduct::y() const { return Floats(state_->y); }

void OnednnProduct::Run() {
  state_->product.execute(
      state_->stream,
      {{DNNL_ARG_SRC, state_->x}, {DNNL_ARG_WEIGHTS, state_->weight}, {DNNL_ARG_DST, state_->y}});
  state_->stream.wait();
}

std::string OnednnProduct::Describe() const {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + ", " + state_->description.impl_info_str();
}

}  // namespace kinglet
