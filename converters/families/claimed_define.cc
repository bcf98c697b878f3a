#include "converters/families/claimed_define.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr const char* kTables = "embeddings.embeds";

class Claimer {
 public:
  Claimer(Network& network, const std::string& prefix) : network_(network), prefix_(prefix) {}

  ClaimedDefine Claim() {
    ClaimBands();
    size_t index = 0;
    do {
      if (!ClaimLayer(prefix_ + "define.weights." + std::to_string(index) + ".")) break;
      ++index;
    } while (network_.Has(prefix_ + "define.weights." + std::to_string(index) + ".weight"));
    ClaimReduce();
    return std::move(claimed_);
  }

 private:
  // A matrix without dimensions of 0; nullptr if there is none.
  const CheckpointTensor* ClaimMatrix(const std::string& name, const std::string& expected) {
    const CheckpointTensor* tensor = network_.ClaimUnshaped(name);
    if (tensor == nullptr) return nullptr;
    const Shape& shape = tensor->shape;
    if (shape.size() == 2 && std::find(shape.begin(), shape.end(), 0u) == shape.end()) {
      return tensor;
    }
    network_.NoteMisshaped(*tensor, expected);
    return nullptr;
  }

  // The Map layer's tables and their projections to n features; n is the first table's width.
  void ClaimBands() {
    uint64_t& n = claimed_.unit.map_width;
    size_t index = 0;
    do {
      const std::string name = "." + std::to_string(index) + ".weight";
      ClaimedDefine::Band band;
      band.table = ClaimMatrix(prefix_ + kTables + name, "[words, width]");
      if (band.table == nullptr) return;
      const uint64_t width = band.table->shape[1];
      if (index == 0) n = width;
      band.projection = network_.Claim(prefix_ + "embeddings.projcs" + name, {n, width});
      claimed_.bands.push_back(band);
      ++index;
    } while (network_.Has(prefix_ + kTables + "." + std::to_string(index) + ".weight"));
  }

  // A layer whose groups share one matrix and one bias. False if the matrix is faulty.
  bool ClaimLayer(const std::string& name) {
    DefineLayer layer;
    layer.weights = DefineLayer::Weights::kShared;
    layer.bias = DefineLayer::Bias::kShared;
    layer.order = DefineLayer::Order::kPreviousFirst;
    if (!claimed_.layers.empty()) layer.skip = DefineLayer::Skip::kMix;
    layer.in = InputWidth(layer, claimed_.unit.map_width, OutputWidth(claimed_.unit));
    const std::string expected = "[out / groups, " + std::to_string(layer.in) + " / groups]";
    ClaimedDefine::Layer tensors;
    tensors.weight = ClaimMatrix(name + "weight", expected);
    if (tensors.weight == nullptr) return false;
    const Shape& shape = tensors.weight->shape;
    if (layer.in % shape[1] != 0 || shape[0] > kLargestDefineWidth) {
      network_.NoteMisshaped(*tensors.weight, expected);
      return false;
    }
    layer.groups = layer.in / shape[1];
    layer.out = layer.groups * shape[0];
    tensors.bias = network_.Claim(name + "bias", {shape[0]});
    Add(layer, tensors);
    return true;
  }

  // The last, reducing layer has one group.
  void ClaimReduce() {
    DefineLayer layer;
    layer.in = OutputWidth(claimed_.unit);
    const std::string expected = "[out, " + std::to_string(layer.in) + "]";
    ClaimedDefine::Layer tensors;
    tensors.weight = ClaimMatrix(prefix_ + "define.finalProj.weight", expected);
    if (tensors.weight == nullptr) return;
    const Shape& shape = tensors.weight->shape;
    if (shape[1] != layer.in) return network_.NoteMisshaped(*tensors.weight, expected);
    layer.out = shape[0];
    tensors.bias = network_.Claim(prefix_ + "define.finalProj.bias", {layer.out});
    Add(layer, tensors);
    claimed_.width = layer.out;
  }

  void Add(const DefineLayer& layer, const ClaimedDefine::Layer& tensors) {
    claimed_.unit.layers.push_back(layer);
    claimed_.layers.push_back(tensors);
  }

  Network& network_;
  const std::string& prefix_;
  ClaimedDefine claimed_;
};

// A unit that owns the tensors that it points to.
struct OwnedDefine {
  explicit OwnedDefine(const ClaimedDefine& from) : claimed(from) {
    for (ClaimedDefine::Band& band : claimed.bands) {
      Keep(band.table);
      Keep(band.projection);
    }
    for (ClaimedDefine::Layer& layer : claimed.layers) {
      Keep(layer.weight);
      Keep(layer.bias);
    }
  }
  OwnedDefine(const OwnedDefine&) = delete;
  OwnedDefine& operator=(const OwnedDefine&) = delete;

  ClaimedDefine claimed;
  std::deque<CheckpointTensor> tensors;

 private:
  void Keep(const CheckpointTensor*& tensor) {
    if (tensor != nullptr) tensor = &tensors.emplace_back(*tensor);
  }
};

}  // namespace

uint64_t ClaimedDefine::Words() const {
  uint64_t words = 0;
  for (const Band& band : bands) words += band.table->shape[0];
  return words;
}

ClaimedDefine ClaimDefine(Network& network, const std::string& prefix) {
  return Claimer(network, prefix).Claim();
}

bool HasDefine(const Network& network, const std::string& prefix) {
  return network.Has(prefix + kTables + ".0.weight");
}

void AddUnit(const ClaimedDefine& claimed, uint32_t cache_rows, Network& network,
             AdaptiveEmbedding& embedding) {
  std::vector<TensorId> tables;
  for (const ClaimedDefine::Band& band : claimed.bands) {
    tables.push_back(network.AddWhole(*band.table, Role::kPrunedAlso));
  }
  uint32_t first = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    const ClaimedDefine::Band& band = claimed.bands[i];
    const auto size = static_cast<uint32_t>(band.table->shape[0]);
    embedding.bins.push_back(
        {first, size, tables[i], network.AddWhole(*band.projection, Role::kPrunedAlso)});
    first += size;
  }
  KeptDefineUnit unit{0, static_cast<uint32_t>(tables.size()), claimed.unit, {}, cache_rows};
  for (const ClaimedDefine::Layer& layer : claimed.layers) {
    unit.tensors.push_back({network.AddWhole(*layer.weight, Role::kPrunedAlso),
                            network.AddWhole(*layer.bias, Role::kQuantised), std::nullopt,
                            std::nullopt});
  }
  embedding.units.push_back(std::move(unit));
}

Result<DefineInput> ReadDefine(const ClaimedDefine& claimed) {
  KINGLET_RETURN_IF_ERROR(CheckUnit(claimed.unit));
  DefineInput input;
  input.unit = claimed.unit;
  for (const ClaimedDefine::Band& band : claimed.bands) {
    DefineBand& to = input.map.emplace_back();
    to.words = band.table->shape[0];
    to.width = band.table->shape[1];
    KINGLET_ASSIGN_OR_RETURN(to.table, ReadFinite(*band.table));
    KINGLET_ASSIGN_OR_RETURN(to.projection, ReadFinite(*band.projection));
  }
  for (const ClaimedDefine::Layer& layer : claimed.layers) {
    DefineWeights& to = input.weights.emplace_back();
    KINGLET_ASSIGN_OR_RETURN(to.weight, ReadFinite(*layer.weight));
    KINGLET_ASSIGN_OR_RETURN(to.bias, ReadFinite(*layer.bias));
  }
  return input;
}

CheckpointTensor DefineTableTensor(const std::string& name, const ClaimedDefine& claimed) {
  const auto owned = std::make_shared<const OwnedDefine>(claimed);
  return {name, {claimed.Words(), claimed.width}, [owned]() -> Result<std::vector<float>> {
            KINGLET_ASSIGN_OR_RETURN(const DefineInput input, ReadDefine(owned->claimed));
            return DefineTable(input.map, input.unit, input.weights, MachineThreads());
          }};
}

}  // namespace kinglet
