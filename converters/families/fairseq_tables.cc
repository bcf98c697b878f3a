#include "converters/families/fairseq_tables.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/limits.h"

namespace kinglet {
namespace {

const std::string kInputModule(kFairseqInput);
const std::string kInput = kInputModule + ".";
const std::string kSoftmax = "decoder.adaptive_softmax.";
const std::string kNoiseMatrix = "decoder.quant_noise.weight";

std::string TableName(size_t band) {
  return kInput + "embeddings." + std::to_string(band) + ".0.weight";
}
std::string ProjectionName(size_t band) {
  return kInput + "embeddings." + std::to_string(band) + ".1.weight";
}
std::string TailName(size_t index) { return kSoftmax + "tail." + std::to_string(index) + "."; }

// embed_out is an older name.
std::string PlainSoftmaxName(const Network& network) {
  const std::string older = "decoder.embed_out";
  return network.Has(older) ? older : "decoder.output_projection.weight";
}

}  // namespace

Result<std::vector<FairseqTables::Band>> FairseqTables::BandsOf(const FairseqBands& bands,
                                                                uint32_t width,
                                                                const char* name) const {
  std::vector<Band> found;
  if (words_ == 0) return found;
  std::vector<uint64_t> ends(bands.cutoffs.begin(), bands.cutoffs.end());
  if (ends.back() > words_) {
    return RefuseCheckpoint(
        name, "words up to " + std::to_string(words_) + ", as many as the embedding has",
        std::to_string(ends.back()));
  }
  if (ends.back() < words_) ends.push_back(words_);
  uint64_t first = 0, columns = width;
  for (const uint64_t end : ends) {
    if (columns == 0) {
      return RefuseCheckpoint(name, "at least one column in every band",
                              "none in band " + std::to_string(found.size()));
    }
    found.push_back({first, end - first, columns});
    first = end;
    columns /= bands.factor;
  }
  return found;
}

// The table of a character CNN has the dictionary's words.
Status FairseqTables::DescribeCharacterEmbedding(AdaptiveEmbedding& embedding) {
  words_ = dictionary_.words.size();
  if (const std::optional<uint64_t> words = OutputWords(); words && *words != words_) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "dictionary", dictionary_.path,
                           std::to_string(*words) +
                               " words, as many as the softmax has, fairseq's own "
                               "included (--vocab FILE names another dictionary)",
                           std::to_string(words_));
  }
  if (config_.characters->cache_rows) {
    KINGLET_RETURN_IF_ERROR(KeepCharacters(config_, dictionary_, network_, embedding));
    bins_ = embedding.bins;
    return {};
  }
  bins_.push_back({0, words(), AddCharacterTable(config_, dictionary_, network_), std::nullopt});
  embedding.bins = bins_;
  return {};
}

// The number of words follows from the last band's table.
Status FairseqTables::FindWords() {
  if (replaced_) {
    const Shape& shape = network_.Find(kInputModule)->shape;
    words_ = OutputWords().value_or(shape[0]);
    return {};
  }
  std::string name = kInput + "weight";
  uint64_t before = 0;
  if (const std::vector<uint32_t>& cutoffs = config_.input.cutoffs; !cutoffs.empty()) {
    const size_t last =
        network_.Has(TableName(cutoffs.size())) ? cutoffs.size() : cutoffs.size() - 1;
    name = TableName(last);
    before = last == 0 ? 0 : cutoffs[last - 1];
  }
  const CheckpointTensor* table = network_.ClaimUnshaped(name);
  if (table == nullptr) return {};
  if (table->shape.size() != 2 || table->shape[0] == 0) {
    network_.NoteMisshaped(*table, "[words, width]");
    return {};
  }
  if (table->shape[0] > kMaxDimension - before) {
    return RefuseCheckpoint("tensor " + name, "at most " + std::to_string(kMaxDimension) + " words",
                            std::to_string(before) + " and " + std::to_string(table->shape[0]));
  }
  words_ = before + table->shape[0];
  return {};
}

// The number of words that the softmax has rows for, where it has tables of its own.
std::optional<uint64_t> FairseqTables::OutputWords() const {
  const std::vector<uint32_t>& cutoffs = config_.output.cutoffs;
  std::vector<std::string> names = {"decoder.output_projection.weight", "decoder.embed_out",
                                    kInput + "weight"};
  uint64_t before = 0;
  if (!cutoffs.empty()) {
    const size_t tails = network_.Has(TailName(cutoffs.size() - 1) + "2.weight")
                             ? cutoffs.size()
                             : cutoffs.size() - 1;
    if (tails == 0) return std::nullopt;
    names = {TailName(tails - 1) + "2.weight", TableName(tails)};
    before = cutoffs[tails - 1];
  }
  for (const std::string& name : names) {
    const CheckpointTensor* table = network_.Find(name);
    if (table != nullptr && table->shape.size() == 2) return before + table->shape[0];
  }
  return std::nullopt;
}

Result<AdaptiveEmbedding> FairseqTables::DescribeEmbedding() {
  AdaptiveEmbedding embedding;
  embedding.name = "embed_tokens";
  embedding.width = config_.width;
  embedding.scale = config_.scaled ? std::sqrt(static_cast<double>(config_.width)) : 1;
  replaced_ = network_.IsMade(kInputModule);
  ShareTables();
  if (config_.characters && !replaced_) {
    KINGLET_RETURN_IF_ERROR(DescribeCharacterEmbedding(embedding));
    return embedding;
  }
  KINGLET_RETURN_IF_ERROR(FindWords());
  if (replaced_) {
    const Shape shape = {words_, config_.width};
    embedding.bins.push_back(
        {0, words(), network_.Add(kInputModule, shape, Role::kPrunedAlso), std::nullopt});
  } else if (config_.input.cutoffs.empty()) {
    DescribePlainEmbedding(embedding);
  } else {
    KINGLET_RETURN_IF_ERROR(DescribeAdaptiveEmbedding(embedding));
  }
  return embedding;
}

// A file may store a tied tensor once, under either name.
void FairseqTables::ShareTables() {
  if (config_.tied_tables && config_.output.cutoffs.empty()) {
    network_.Share(kInput + "weight", PlainSoftmaxName(network_));
  } else if (config_.tied_tables) {
    network_.Share(TableName(0), kSoftmax + "head.word_proj.weight");
    for (size_t tail = 0; tail < config_.output.cutoffs.size(); ++tail) {
      network_.Share(TableName(tail + 1), TailName(tail) + "2.weight");
      if (!config_.tied_projections) continue;
      network_.Share(ProjectionName(tail + 1), TailName(tail) + "0.weight");
    }
  }
}

Status FairseqTables::DescribeAdaptiveEmbedding(AdaptiveEmbedding& embedding) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Band> bands,
                           BandsOf(config_.input, config_.input_width, "adaptive_input_cutoff"));
  for (size_t b = 0; b < bands.size(); ++b) {
    const auto& [first, size, columns] = bands[b];
    const Shape table = {size, columns}, projection = {config_.width, columns};
    tables_.push_back(network_.Claim(TableName(b), table));
    projections_.push_back(network_.Claim(ProjectionName(b), projection));
    bins_.push_back(
        {static_cast<uint32_t>(first), static_cast<uint32_t>(size),
         network_.Add(TableName(b), table, Role::kPrunedAlso, tables_.back()),
         network_.Add(ProjectionName(b), projection, Role::kQuantised, projections_.back())});
  }
  embedding.bins = bins_;
  return {};
}

void FairseqTables::DescribePlainEmbedding(AdaptiveEmbedding& embedding) {
  if (words_ == 0) return;
  const Shape shape = {words_, config_.input_width};
  tables_.push_back(network_.Claim(kInput + "weight", shape));
  EmbeddingBin bin{0, words(),
                   network_.Add(kInput + "weight", shape, Role::kPrunedAlso, tables_.back()),
                   std::nullopt};
  if (config_.input_width != config_.width) {
    bin.projection = network_.Add("decoder.project_in_dim.weight",
                                  {config_.width, config_.input_width}, Role::kQuantised);
  }
  if (config_.noise_matrix) {
    bin.projection = network_.Add(kNoiseMatrix, {config_.width, config_.width}, Role::kQuantised);
  }
  bins_.push_back(bin);
  embedding.bins = bins_;
}

Result<AdaptiveSoftmax> FairseqTables::DescribeSoftmax() {
  AdaptiveSoftmax softmax{};
  softmax.name = "adaptive_softmax";
  softmax.width = config_.width;
  if (config_.output.cutoffs.empty()) {
    softmax.name = "output_projection";
    DescribePlainSoftmax(softmax);
  } else {
    KINGLET_RETURN_IF_ERROR(DescribeAdaptiveSoftmax(softmax));
  }
  if (replaced_) MarkInputUnused();
  return softmax;
}

void FairseqTables::MarkInputUnused() {
  if (config_.characters) {
    MarkCharactersUnused(config_, network_);
    return;
  }
  std::vector<std::string> names = {kInput + "weight", "decoder.project_in_dim.weight",
                                    kNoiseMatrix};
  for (size_t b = 0; b <= config_.input.cutoffs.size(); ++b) {
    names.push_back(TableName(b));
    names.push_back(ProjectionName(b));
  }
  network_.MarkUnused(names);
}

Status FairseqTables::DescribeAdaptiveSoftmax(AdaptiveSoftmax& softmax) {
  KINGLET_ASSIGN_OR_RETURN(
      const std::vector<Band> bands,
      BandsOf(config_.output, config_.output_width, "adaptive_softmax_cutoff"));
  if (bands.empty()) return {};
  DescribeProjectOut(softmax);
  DescribeHead(softmax, bands[0].size, bands.size() - 1);
  for (size_t b = 1; b < bands.size(); ++b) {
    softmax.tails.push_back(DescribeTail(bands[b], b - 1));
  }
  return {};
}

// The head's rows are those of its words, then those of the clusters in the order of the tails.
void FairseqTables::DescribeHead(AdaptiveSoftmax& softmax, uint64_t size, uint64_t tails) {
  const uint64_t width = config_.output_width;
  softmax.head_size = static_cast<uint32_t>(size);
  const Shape clusters = {tails, width};
  if (config_.tied_tables) {
    softmax.head_table = SoftmaxTable(kSoftmax + "head.word_proj.weight", {size, width}, 0);
    const std::string name = kSoftmax + "head.class_proj.weight";
    if (tails > 0) {
      softmax.cluster_weight = network_.Add(name, clusters, Role::kQuantised);
    } else {
      network_.Claim(name, clusters, false);  // a matrix without rows
    }
    return;
  }
  const std::string name = kSoftmax + "head.weight";
  const CheckpointTensor* rows = network_.Claim(name, {size + tails, width});
  softmax.head_table = network_.Add(name, {size, width}, Role::kPrunedAlso, rows);
  if (tails == 0) return;
  softmax.cluster_weight =
      network_.Add(name + ".clusters", clusters, Role::kQuantised, rows, {size, 0});
}

SoftmaxTail FairseqTables::DescribeTail(const Band& band, size_t index) {
  const uint64_t width = config_.output_width;
  const std::string prefix = TailName(index);
  const std::string projection = prefix + "0.weight", table = prefix + "2.weight";
  const Shape rows = {band.size, band.columns}, projected = {band.columns, width};
  SoftmaxTail tail{};
  tail.first = static_cast<uint32_t>(band.first);
  tail.size = static_cast<uint32_t>(band.size);
  tail.cluster_row = static_cast<uint32_t>(index);
  if (config_.tied_projections) {
    tail.projection =
        network_.AddTransposed(projection, projected, Role::kQuantised,
                               SoftmaxProjection(projection, {width, band.columns}, index + 1));
    network_.MarkDerived(*tail.projection);
  } else if (width != config_.width) {
    // The tail reads the hidden state that project_out_dim makes.
    tail.projection =
        network_.AddJoined(projection, {band.columns, config_.width}, Role::kQuantised,
                           {network_.Claim(projection, projected), project_out_},
                           ProductOf(band.columns, width, config_.width));
  } else {
    tail.projection = network_.Add(projection, projected, Role::kQuantised);
  }
  if (config_.tied_tables) {
    tail.table = SoftmaxTable(table, rows, index + 1);
  } else {
    tail.table = network_.Add(table, rows, Role::kPrunedAlso);
  }
  return tail;
}

void FairseqTables::DescribePlainSoftmax(AdaptiveSoftmax& softmax) {
  if (words_ == 0) return;
  softmax.head_size = words();
  const Shape shape = {words_, config_.output_width};
  const std::string name = PlainSoftmaxName(network_);
  if (config_.tied_tables) {
    softmax.head_table = SoftmaxTable(name, shape, 0);
  } else {
    softmax.head_table = network_.Add(name, shape, Role::kPrunedAlso);
  }
  DescribeProjectOut(softmax);
}

void FairseqTables::DescribeProjectOut(AdaptiveSoftmax& softmax) {
  if (config_.output_width == config_.width) return;
  const std::string name = "decoder.project_out_dim.weight";
  const Shape shape = {config_.output_width, config_.width};
  project_out_ = network_.Claim(name, shape);
  softmax.head_projection = network_.Add(name, shape, Role::kQuantised, project_out_);
}

// The table of a band that the embedding shares. Where a recipe makes the embedding's, the softmax
// keeps the checkpoint's, under either name.
TensorId FairseqTables::SoftmaxTable(const std::string& copy, const Shape& shape, size_t band) {
  const CheckpointTensor* inward = replaced_ ? nullptr : tables_[band];
  const bool made = inward != nullptr && !inward->made.empty();
  if (!replaced_ && !made) {
    NoteTie(copy, shape, inward);
    return bins_[band].table;
  }
  return network_.Add(copy, shape, Role::kPrunedAlso);
}

// The projection of a band that the embedding shares. The softmax multiplies by the transpose.
const CheckpointTensor* FairseqTables::SoftmaxProjection(const std::string& copy,
                                                         const Shape& shape, size_t band) {
  if (!replaced_) {
    NoteTie(copy, shape, projections_[band]);
    return projections_[band];
  }
  return network_.Claim(copy, shape);
}

// A file may store a tied tensor a second time, under the softmax's name.
void FairseqTables::NoteTie(const std::string& copy, const Shape& shape,
                            const CheckpointTensor* original) {
  const CheckpointTensor* found = network_.Claim(copy, shape, false);
  if (found != nullptr && original != nullptr) ties_.emplace_back(found, original);
}

Status FairseqTables::CheckTies() const {
  for (const auto& [copy, original] : ties_) {
    KINGLET_ASSIGN_OR_RETURN(const bool same, SameParameter(*copy, *original));
    if (same) continue;
    return RefuseCheckpoint(
        "tensor " + copy->name,
        "the values of " + original->name + ", as the hyper-parameters tie them", "other values");
  }
  return {};
}

}  // namespace kinglet
