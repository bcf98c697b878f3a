#include "tools/unit_layers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "converters/texts/token_file.h"
#include "runtime/embedder.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// The elements that the layer's group computed, in its order.
std::vector<double> OfGroup(const DefineLayer& layer, const std::vector<double>& vector,
                            uint64_t group) {
  const uint64_t width = vector.size() / layer.groups;
  const bool shuffled = layer.shuffle != DefineLayer::Shuffle::kNone;
  std::vector<double> own;
  for (uint64_t i = 0; i < width; ++i) {
    own.push_back(vector[shuffled ? i * layer.groups + group : group * width + i]);
  }
  return own;
}

// One layer of each unit of a model's input.
class UnitLayers {
 public:
  UnitLayers(const RunOptions& options, uint32_t layer, std::shared_ptr<const ModelFile> file)
      : options_(options),
        layer_(layer),
        file_(std::move(file)),
        embedding_(*FindBlock<AdaptiveEmbedding>(file_->description())),
        embedders_(embedding_.units.size()) {}

  bool empty() const { return embedding_.units.empty(); }
  uint32_t words() const { return file_->description().vocabulary_size; }

  // The unit that makes the word's row; nullptr if there is none.
  const KeptDefineUnit* UnitOfWord(uint32_t id) const {
    const auto bin = std::ranges::find_if(embedding_.bins, [id](const EmbeddingBin& each) {
      return id >= each.first && id - each.first < each.size;
    });
    return UnitOf(embedding_.units, static_cast<size_t>(bin - embedding_.bins.begin()));
  }

  Result<UnitVector> VectorOf(uint32_t id, const KeptDefineUnit& kept) {
    if (layer_ > kept.unit.layers.size()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, options_.model, "--layer",
                             "0 (Map) to " + std::to_string(kept.unit.layers.size()),
                             std::to_string(layer_));
    }
    const auto index = static_cast<uint32_t>(&kept - embedding_.units.data());
    std::unique_ptr<Embedder>& embedder = embedders_[index];
    if (embedder == nullptr) {
      ModelOptions part;
      part.backend = options_.backend;
      part.only = UnitPart{index, layer_};
      KINGLET_ASSIGN_OR_RETURN(auto model, Model::FromFile(file_, part));
      KINGLET_ASSIGN_OR_RETURN(embedder, Embedder::Create(std::move(model)));
    }
    UnitVector vector{std::vector<double>(embedder->width()), {}, NumberDigits(embedder->model())};
    KINGLET_RETURN_IF_ERROR(embedder->Vector(id, std::span(vector.all)));
    const DefineLayer map;
    const DefineLayer& made = layer_ == 0 ? map : kept.unit.layers[layer_ - 1];
    for (uint64_t group = 0; group < made.groups; ++group) {
      vector.groups.push_back(OfGroup(made, vector.all, group));
    }
    return vector;
  }

 private:
  const RunOptions& options_;
  const uint32_t layer_;
  const std::shared_ptr<const ModelFile> file_;
  const AdaptiveEmbedding& embedding_;
  std::vector<std::unique_ptr<Embedder>> embedders_;  // by unit; null until a word needs it
};

}  // namespace

Status ForEachUnitVector(const RunOptions& options, const std::string& ids, uint32_t layer,
                         const UnitVectorSink& sink) {
  KINGLET_RETURN_IF_ERROR(FindBackend(options.backend).status());
  KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::Open(options.model));
  UnitLayers layers(options, layer, std::move(file));
  if (layers.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.model, "--layer",
                           "a model that keeps a DeFINE unit (convert --keep-define ROWS)",
                           "one without");
  }
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence, ReadIdSequence(ids, layers.words()));
  for (const uint32_t id : sequence.ids) {
    const KeptDefineUnit* const unit = layers.UnitOfWord(id);
    if (unit == nullptr) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, ids, "--layer",
                             "words of a DeFINE unit's bins", "id " + std::to_string(id));
    }
    KINGLET_ASSIGN_OR_RETURN(const UnitVector vector, layers.VectorOf(id, *unit));
    KINGLET_RETURN_IF_ERROR(sink(id, vector));
  }
  return Status();
}

}  // namespace kinglet
