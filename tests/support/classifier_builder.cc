#include "tests/support/classifier_builder.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

class Builder : TensorMaker {
 public:
  Builder(const TinyClassifierOptions& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed), options_(options) {}

  void Build() {
    ModelDescription& description = draft_.description;
    description.provenance = {"kinglet tests", "recipe", "model.pt", std::string(32, '0'), ""};
    description.vocabulary_size = options_.vocabulary_size;
    description.blocks.push_back(AdaptiveEmbedding{
        "embedding", options_.width, 1.5, {{0, options_.vocabulary_size, AddTable(), {}}}});
    if (options_.classes > 0) description.blocks.push_back(MakeClassifier());
    for (uint32_t i = 0; options_.vocabulary && i < options_.vocabulary_size; ++i) {
      draft_.vocabulary.push_back("w" + std::to_string(i));
    }
  }

 private:
  TensorId Add(const std::string& name, Shape shape, float centre) {
    return Floats(name, std::move(shape), centre, 1);
  }
  std::optional<TensorId> AddBias(const std::string& name, uint64_t size) {
    if (!options_.biases) return std::nullopt;
    return Add(name, {size}, 0);
  }

  TensorId AddTable() {
    const uint64_t words = options_.vocabulary_size, width = options_.width;
    if (options_.positions == 0) return Add("embedding.table", {words, width}, 0);
    constexpr uint32_t kChoices = 5;
    Coded coded;
    coded.scheme.positions = options_.positions;
    coded.scheme.pools.assign(options_.positions, kChoices);
    coded.scheme.codebook =
        Add("embedding.table.codebook",
            {uint64_t{options_.positions} * kChoices, width / options_.positions}, 0);
    std::vector<uint32_t> codes(words * options_.positions);
    for (uint32_t& code : codes) code = random_.Below(kChoices);
    coded.codes = std::move(codes);
    return TensorMaker::Add({"embedding.table", {words, width}, std::move(coded), false});
  }

  BagClassifier MakeClassifier() {
    BagClassifier classifier{};
    classifier.name = "classifier";
    classifier.classes = options_.classes;
    classifier.padding = options_.padding;
    classifier.max_pool = options_.max_pool;
    uint64_t inputs = options_.max_pool ? 2 * options_.width : options_.width;
    if (const uint64_t units = options_.hidden; units > 0) {
      BagHiddenLayer hidden{};
      hidden.input_scale = Add("hidden.input.scale", {inputs}, 1);
      hidden.input_shift = Add("hidden.input.shift", {inputs}, 0);
      hidden.weight = Add("hidden.weight", {units, inputs}, 0);
      hidden.bias = AddBias("hidden.bias", units);
      hidden.output_scale = Add("hidden.output.scale", {units}, 1);
      hidden.output_shift = Add("hidden.output.shift", {units}, 0);
      classifier.hidden = hidden;
      inputs = units;
    }
    classifier.weight = Add("classifier.weight", {options_.classes, inputs}, 0);
    classifier.bias = AddBias("classifier.bias", options_.classes);
    return classifier;
  }

  const TinyClassifierOptions options_;
};

}  // namespace

ModelDraft TinyClassifier(const TinyClassifierOptions& options) {
  ModelDraft draft;
  Builder(options, draft).Build();
  return draft;
}

}  // namespace kinglet
