#include "converters/families/transformer_xl_tables.h"

#include <cmath>
#include <string>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr const char* kWordEmbedding = "word_emb";

}  // namespace

Result<std::vector<TransformerXlTables::Bin>> TransformerXlTables::BinsOf(
    const TransformerXlNetwork& settings) {
  std::vector<Bin> bins;
  if (settings.cutoffs.size() >= kMaxBins) {
    return RefuseCheckpoint("cutoffs", "fewer than " + std::to_string(kMaxBins),
                            std::to_string(settings.cutoffs.size()));
  }
  int64_t first = 0;
  auto width = static_cast<uint64_t>(settings.embedding_width);
  for (size_t b = 0; b <= settings.cutoffs.size(); ++b) {
    const bool last = b == settings.cutoffs.size();
    const int64_t end = last ? settings.words : settings.cutoffs[b];
    if (end <= first || end > settings.words) {
      return RefuseCheckpoint("cutoffs",
                              "ascending words between 0 and " + std::to_string(settings.words),
                              std::to_string(end));
    }
    if (width == 0) {
      return RefuseCheckpoint("div_val", "at least one column in every bin",
                              std::to_string(settings.divisor) + " for bin " + std::to_string(b));
    }
    bins.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(end - first), width});
    first = end;
    width /= static_cast<uint64_t>(settings.divisor);
  }
  return bins;
}

TransformerXlTables::TransformerXlTables(const TransformerXlNetwork& settings,
                                         std::vector<Bin> bins, Network& network)
    : settings_(settings),
      network_(network),
      bins_(std::move(bins)),
      width_(static_cast<uint64_t>(settings.width)),
      divided_(settings.divisor != 1),
      projected_(divided_ || settings.embedding_width != settings.width),
      replaced_(network.IsMade(settings.prefix + kWordEmbedding)) {}

Result<TransformerXlTables> TransformerXlTables::Make(const TransformerXlNetwork& settings,
                                                      Network& network) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<Bin> bins, BinsOf(settings));
  return TransformerXlTables(settings, std::move(bins), network);
}

void TransformerXlTables::Claim() {
  if (replaced_) {
    made_ = network_.Claim(settings_.prefix + kWordEmbedding,
                           {static_cast<uint64_t>(settings_.words), width_});
  }
  ClaimTables();
  ClaimProjections();
  ClaimClusters();
  std::vector<std::string> replaced;
  for (size_t b = 0; replaced_ && b < bins_.size(); ++b) {
    const std::string module = settings_.prefix + kWordEmbedding, number = std::to_string(b);
    replaced.push_back(module + ".emb_layers." + number + ".weight");
    replaced.push_back(module + ".emb_projs." + number);
  }
  network_.MarkUnused(replaced);
}

// Of a tied pair, the file may lack either one. `how`: what ties a pair that is not.
void TransformerXlTables::SharePair(const std::string& inward, const std::string& outward,
                                    bool tied, const std::string& how) {
  if (tied) {
    network_.Share(inward, outward);
  } else if (!replaced_ || !network_.Has(outward)) {
    network_.MayShare(inward, outward, std::string(settings_.options_place) + " with " + how);
  }
}

TransformerXlTables::Pair TransformerXlTables::ClaimPair(const std::string& inward,
                                                         const std::string& outward,
                                                         const Shape& shape) {
  Pair pair;
  if (!replaced_) pair.inward = network_.Claim(inward, shape);
  pair.outward = network_.Claim(outward, shape);
  return pair;
}

// One table for all words, or one for each bin.
void TransformerXlTables::ClaimTables() {
  for (size_t t = 0; t < (divided_ ? bins_.size() : 1); ++t) {
    const uint64_t rows = divided_ ? bins_[t].size : static_cast<uint64_t>(settings_.words);
    const std::string number = std::to_string(t);
    const std::string layer = "crit.out_layers." + number + ".";
    const std::string inward =
        settings_.prefix + kWordEmbedding + ".emb_layers." + number + ".weight";
    SharePair(inward, layer + "weight", settings_.tied_tables,
              settings_.tables_option + std::string(": true"));
    tables_.push_back(ClaimPair(inward, layer + "weight", {rows, bins_[t].width}));
    biases_.push_back(network_.Claim(layer + "bias", {rows}));
  }
}

// The embedding has a projection for each table, the softmax one for each bin.
void TransformerXlTables::ClaimProjections() {
  if (!projected_) return;
  for (size_t b = 0; b < bins_.size(); ++b) {
    const std::string number = std::to_string(b);
    const std::string outward = "crit.out_projs." + number;
    const Shape shape = {width_, bins_[b].width};
    const std::string inward =
        settings_.prefix + kWordEmbedding + ".emb_projs." + (divided_ ? number : "0");
    SharePair(inward, outward, IsTiedProjection(b),
              "a list tie_projs whose item " + number + " is true");
    const bool again = !divided_ && b > 0;
    projections_.push_back(again ? Pair{projections_[0].inward, network_.Claim(outward, shape)}
                                 : ClaimPair(inward, outward, shape));
  }
}

void TransformerXlTables::ClaimClusters() {
  const uint64_t tails = bins_.size() - 1;
  if (tails == 0) return;
  cluster_weight_ = network_.Claim("crit.cluster_weight", {tails, bins_[0].width});
  cluster_bias_ = network_.Claim("crit.cluster_bias", {tails});
}

Status TransformerXlTables::FindTies() {
  for (std::vector<Pair>* pairs : {&tables_, &projections_}) {
    for (Pair& pair : *pairs) {
      if (pair.inward == nullptr) continue;
      KINGLET_ASSIGN_OR_RETURN(pair.tied, SameParameter(*pair.inward, *pair.outward));
      const bool projection = pairs == &projections_;
      if (projection ? IsTiedProjection(static_cast<size_t>(&pair - pairs->data()))
                     : settings_.tied_tables) {
        KINGLET_RETURN_IF_ERROR(CheckStatedTie(projection ? "tie_projs" : settings_.tables_option,
                                               *pair.inward, *pair.outward, pair.tied));
      }
      if (pair.tied) pair.outward = pair.inward;
    }
  }
  return {};
}

// The rows of a bin, from its own table or from the table of all words.
TensorId TransformerXlTables::AddRows(const CheckpointTensor& table, size_t bin) {
  const Bin& words = bins_[bin];
  if (divided_ || bins_.size() == 1) return network_.AddWhole(table, Role::kPrunedAlso);
  return network_.Add(table.name + "." + std::to_string(bin), {words.size, words.width},
                      Role::kPrunedAlso, &table, {words.first, 0});
}
TensorId TransformerXlTables::AddBias(size_t bin) {
  const CheckpointTensor& bias = *biases_[divided_ ? bin : 0];
  if (divided_ || bins_.size() == 1) return network_.AddWhole(bias, Role::kQuantised);
  return network_.Add(bias.name + "." + std::to_string(bin), {bins_[bin].size}, Role::kQuantised,
                      &bias, {0, bins_[bin].first});
}

// The softmax multiplies by the transpose. Bins may share a projection.
std::optional<TensorId> TransformerXlTables::AddOutwardProjection(size_t bin) {
  if (!projected_) return std::nullopt;
  const TensorId id = network_.AddTransposed(
      "crit.out_projs." + std::to_string(bin) + ".transposed", {bins_[bin].width, width_},
      Role::kQuantised, projections_[bin].outward);
  if (projections_[bin].tied) network_.MarkDerived(id);  // the embedding's projection again
  return id;
}

AdaptiveSoftmax TransformerXlTables::DescribeSoftmax() {
  AdaptiveSoftmax softmax{};
  softmax.name = "crit";
  softmax.width = static_cast<uint32_t>(width_);
  softmax.head_size = bins_[0].size;
  const size_t tails = bins_.size() - 1;
  std::vector<TensorId> rows;  // by bin
  for (size_t b = 0; b < bins_.size(); ++b) {
    const CheckpointTensor& table = *tables_[divided_ ? b : 0].outward;
    rows.push_back(AddRows(table, b));
  }
  for (size_t b = 0; b < bins_.size(); ++b) {
    const std::optional<TensorId> projection = AddOutwardProjection(b);
    const TensorId bias = AddBias(b);
    if (b == 0) {
      softmax.head_projection = projection;
      softmax.head_table = rows[0];
      softmax.head_bias = bias;
      continue;
    }
    // kimiyoung's code reads bin b's cluster logit at -b, from the end of the head's logits.
    const size_t row = settings_.forward_clusters ? b - 1 : tails - b;
    softmax.tails.push_back(
        {bins_[b].first, bins_[b].size, static_cast<uint32_t>(row), projection, rows[b], bias});
  }
  if (tails > 0) {
    softmax.cluster_weight = network_.AddWhole(*cluster_weight_, Role::kQuantised);
    softmax.cluster_bias = network_.AddWhole(*cluster_bias_, Role::kQuantised);
  }
  return softmax;
}

AdaptiveEmbedding TransformerXlTables::DescribeEmbedding() {
  AdaptiveEmbedding embedding;
  embedding.name = "word_emb";
  embedding.width = static_cast<uint32_t>(width_);
  embedding.scale = std::sqrt(static_cast<double>(width_));
  if (replaced_) {
    embedding.bins.push_back({0, static_cast<uint32_t>(settings_.words),
                              network_.AddWhole(*made_, Role::kPrunedAlso), std::nullopt});
    return embedding;
  }
  std::optional<TensorId> shared;
  if (projected_ && !divided_)
    shared = network_.AddWhole(*projections_[0].inward, Role::kQuantised);
  if (!divided_ && !tables_[0].tied) {
    const TensorId table = network_.AddWhole(*tables_[0].inward, Role::kPrunedAlso);
    embedding.bins.push_back({0, static_cast<uint32_t>(settings_.words), table, shared});
    return embedding;
  }
  for (size_t b = 0; b < bins_.size(); ++b) {
    const Pair& table = tables_[divided_ ? b : 0];
    EmbeddingBin bin{bins_[b].first, bins_[b].size, AddRows(*table.inward, b), shared};
    if (divided_) bin.projection = network_.AddWhole(*projections_[b].inward, Role::kQuantised);
    embedding.bins.push_back(bin);
  }
  return embedding;
}

}  // namespace kinglet
