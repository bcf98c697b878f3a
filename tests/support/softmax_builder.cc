#include "tests/support/softmax_builder.h"

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

class SoftmaxModelBuilder : TensorMaker {
 public:
  SoftmaxModelBuilder(const TinySoftmax& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed), options_(options) {}

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

  TensorId Matrix(const std::string& name, uint32_t rows, uint32_t cols) {
    return TensorMaker::Matrix("output." + name, rows, cols, options_.bits, 1);
  }
  TensorId Vector(const std::string& name, uint32_t size, float limit) {
    return Floats("output." + name, {size}, 0, limit);
  }

  const TinySoftmax& options_;
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
