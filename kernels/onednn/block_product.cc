#include "kernels/onednn/block_product.h"

#include <algorithm>
#include <array>
#include <new>
#include <unordered_map>
#include <utility>

#include "kernels/onednn/library.h"

namespace kinglet::onednn {
namespace {

constexpr uint64_t kLine = WorkMemory::kAlignment;

uint64_t WholeLines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Numbers of both signs that are not alike.
float NumberAt(uint64_t i) { return static_cast<float>(i * 7919 % 1021) / 512 - 1; }

dnnl::memory::dim Dim(uint64_t count) { return static_cast<dnnl::memory::dim>(count); }

}  // namespace

struct BlockProduct::Made {
  explicit Made(uint64_t cols)
      : engine(dnnl::engine::kind::cpu, 0),
        description(DescribeProduct(engine, Dim(kTileVectors), Dim(kBlockRows), Dim(cols))),
        product(description),
        rows({Dim(kBlockRows), Dim(cols), 1, 1}, dnnl::memory::data_type::f32,
             dnnl::memory::format_tag::oihw),
        x(description.src_desc()),
        weight(description.weights_desc()),
        y(description.dst_desc()),
        scratch(description.scratchpad_desc()) {}

  dnnl::engine engine;
  dnnl::convolution_forward::primitive_desc description;
  dnnl::convolution_forward product;
  dnnl::memory::desc rows, x, weight, y, scratch;
};

struct BlockProduct::Run::Use {
  Use(const Made& made, std::byte* scratch_bytes)
      : product(&made.product),
        stream(made.engine),
        x(made.x, made.engine, DNNL_MEMORY_NONE),
        weight(made.weight, made.engine, DNNL_MEMORY_NONE),
        y(made.y, made.engine, DNNL_MEMORY_NONE),
        scratch(made.scratch, made.engine, scratch_bytes),
        arguments{{{DNNL_ARG_SRC, x.get()},
                   {DNNL_ARG_WEIGHTS, weight.get()},
                   {DNNL_ARG_DST, y.get()},
                   {DNNL_ARG_SCRATCHPAD, scratch.get()}}} {}

  OneThread one_thread;
  const dnnl::convolution_forward* product;
  dnnl::stream stream;
  dnnl::memory x, weight, y, scratch;
  std::array<dnnl_exec_arg_t, 4> arguments;
};

BlockProduct::BlockProduct(std::unique_ptr<const Made> made) : made_(std::move(made)) {}
BlockProduct::~BlockProduct() = default;

std::shared_ptr<const BlockProduct> BlockProduct::Of(uint64_t cols) {
  const OneThread one_thread;
  try {
    const std::shared_ptr<const BlockProduct> product(
        new BlockProduct(std::make_unique<const Made>(cols)));
    return product->PlacesAreAlike(cols) ? product : nullptr;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    throw std::bad_alloc();
  }
}

uint64_t BlockProduct::weight_bytes() const { return WholeLines(made_->weight.get_size()); }
uint64_t BlockProduct::scratch_bytes() const { return WholeLines(made_->scratch.get_size()); }

std::string BlockProduct::Describe() const {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + ", " + made_->description.impl_info_str();
}

void BlockProduct::LayOut(const float* rows, std::byte* weight) const {
  const OneThread one_thread;
  try {
    dnnl::stream stream(made_->engine);
    // The library only reads it.
    dnnl::memory from(made_->rows, made_->engine, const_cast<float*>(rows));
    dnnl::memory to(made_->weight, made_->engine, weight);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  } catch (const dnnl::error&) {
    throw std::bad_alloc();
  }
}

bool BlockProduct::PlacesAreAlike(uint64_t cols) const {
  cpu::AlignedVector<float> rows(kBlockRows * cols), x(kTileVectors * cols);
  constexpr size_t kResults = kTileVectors * kBlockRows;
  cpu::AlignedVector<float> alike(kResults), among_zeros(kResults);
  cpu::AlignedVector<std::byte> weight(weight_bytes()), scratch(scratch_bytes());
  for (uint64_t i = 0; i < rows.size(); ++i) rows[i] = NumberAt(i);
  LayOut(rows.data(), weight.data());
  Run run(*this, scratch.data());
  for (uint64_t i = 0; i < x.size(); ++i) x[i] = NumberAt(i % cols * 3 + 1);
  run.Multiply(weight.data(), x.data(), alike.data());
  bool same = true;
  for (size_t place = 0; place < kTileVectors; ++place) {
    std::fill(x.begin(), x.end(), 0.0f);
    for (uint64_t i = 0; i < cols; ++i) x[place * cols + i] = NumberAt(i * 3 + 1);
    run.Multiply(weight.data(), x.data(), among_zeros.data());
    const float* const result = among_zeros.data() + place * kBlockRows;
    for (const float* other : {alike.data(), alike.data() + place * kBlockRows}) {
      same = same && std::equal(result, result + kBlockRows, other);
    }
  }
  return same;
}

BlockProduct::Run::Run(const BlockProduct& product, std::byte* scratch) {
  try {
    use_ = std::make_unique<Use>(*product.made_, scratch);
  } catch (const dnnl::error&) {
    throw std::bad_alloc();
  }
}
BlockProduct::Run::~Run() = default;

void BlockProduct::Run::Multiply(const std::byte* weight, const float* x, float* y) {
  try {
    // The library only reads these two.
    use_->weight.set_data_handle(const_cast<std::byte*>(weight));
    use_->x.set_data_handle(const_cast<float*>(x));
    use_->y.set_data_handle(y);
  } catch (const dnnl::error&) {
    throw std::bad_alloc();
  }
  const auto& arguments = use_->arguments;
  // Not the C++ call, which makes a map of its arguments. A stream of the processor has nothing to
  // wait for.
  if (dnnl_primitive_execute(use_->product->get(), use_->stream.get(),
                             static_cast<int>(arguments.size()),
                             arguments.data()) != dnnl_success) {
    throw std::bad_alloc();
  }
}

}  // namespace kinglet::onednn
