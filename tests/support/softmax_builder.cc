#include "tests/support/softmax_builder.h"

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace kinglet {
namespace {

class SoftmaxModelBuilder {
 public:
  SoftmaxModelBuilder(const TinySoftmax& options, ModelDraft& draft)
      : options_(options), draft_(draft), random_(options.seed) {}

  AdaptiveSoftmax Build(uint32_t width) {
    AdaptiveSoftmax softmax;
    softmax.name = "output";
    softmax.width = width;
    softmax.head_size = options_.head_size;
    softmax.tail_input = options_.tail_input;
    softmax.normalisation = options_.normalisation;
    const auto tails = static_cast<uint32_t>(options_.tails.size());
    uint32_t columns = width;
    if (options_.head_columns > 0) {
      columns = options_.head_columns;
      softmax.head_projection = Matrix("head.projection", columns, width);
    }
    if (options_.head_size > 0) {
      softmax.head_table = Matrix("head.table", options_.head_size, columns);
      if (options_.head_bias) softmax.head_bias = Vector("head.bias", options_.head_size, 1);
    }
    if (tails > 0) {
      softmax.cluster_weight = Matrix("clusters", tails, columns);
      if (options_.cluster_bias) {
        softmax.cluster_bias = Vector("clusters.bias", tails, options_.spread);
      }
    }
    uint32_t first = options_.head_size;
    for (uint32_t i = 0; i < tails; ++i) {
      softmax.tails.push_back(MakeTail(i, first, width));
      first += options_.tails[i];
    }
    return softmax;
  }

 private:
  SoftmaxTail MakeTail(uint32_t index, uint32_t first, uint32_t width) {
    const std::string name = "tail." + std::to_string(index) + ".";
    SoftmaxTail tail{};
    tail.first = first;
    tail.size = options_.tails[index];
    const auto last = static_cast<uint32_t>(options_.tails.size()) - 1;
    tail.cluster_row = options_.reverse_rows ? last - index : index;
    uint32_t columns = width;
    if (options_.tail_columns > 0 && index % 2 == 0) {
      columns = options_.tail_columns;
      tail.projection = Matrix(name + "projection", columns, width);
    }
    tail.table = Matrix(name + "table", tail.size, columns);
    if (options_.tail_bias && index % 2 == 1) tail.bias = Vector(name + "bias", tail.size, 1);
    return tail;
  }

  TensorId Add(EncodedTensor tensor) {
    draft_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(draft_.tensors.size() - 1);
  }
  TensorId Matrix(const std::string& name, uint32_t rows, uint32_t cols) {
    if (options_.bits == 0) {
      DenseF32 dense;
      for (uint32_t i = 0; i < rows * cols; ++i) dense.values.push_back(random_.Signed());
      return Add({"output." + name, {rows, cols}, std::move(dense), false});
    }
    Quantised quantised;
    quantised.bits = options_.bits;
    const int largest = (1 << (options_.bits - 1)) - 1;
    for (uint32_t i = 0; i < rows * cols; ++i) {
      const auto code = static_cast<int>(random_.Below(static_cast<uint64_t>(2 * largest + 1)));
      quantised.codes.push_back(static_cast<int16_t>(code - largest));
    }
    for (uint32_t row = 0; row < rows; ++row) {
      quantised.scales.push_back((1 + 0.5f * random_.Signed()) / static_cast<float>(largest));
    }
    return Add({"output." + name, {rows, cols}, std::move(quantised), false});
  }
  TensorId Vector(const std::string& name, uint32_t size, float limit) {
    DenseF32 dense;
    for (uint32_t i = 0; i < size; ++i) dense.values.push_back(limit * random_.Signed());
    return Add({"output." + name, {size}, std::move(dense), false});
  }

  const TinySoftmax& options_;
  ModelDraft& draft_;
  TestRandom random_;
};

}  // namespace

ModelDraft TinyMicronetWith(const TinySoftmax& softmax, TinyOptions options) {
  options.bins = 1;
  options.vocabulary_size =
      std::accumulate(softmax.tails.begin(), softmax.tails.end(), softmax.head_size);
  ModelDraft draft = TinyMicronet(options);
  for (Block& block : draft.description.blocks) {
    if (auto* own = std::get_if<AdaptiveSoftmax>(&block)) {
      *own = SoftmaxModelBuilder(softmax, draft).Build(own->width);
    }
  }
  return draft;
}

}  // namespace kinglet
