// The embedding and the softmax of a fairseq language model: adaptive (AdaptiveInput,
// AdaptiveSoftmax), plain or computed from characters, with all ways in which they share tables and
// projections.
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_TABLES_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/families/fairseq_characters.h"
#include "converters/families/fairseq_config.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// The module that is the entire input; a recipe may make it.
inline constexpr std::string_view kFairseqInput = "decoder.embed_tokens";

// Claims tensors and describes the blocks at once. Omits parts that depend on a faulty tensor. Call
// the functions in their order.
class FairseqTables {
 public:
  // The dictionary is for config.characters, unless a recipe makes the input. REQUIRES: all three
  // outlive the object.
  FairseqTables(const FairseqConfig& config, const FairseqDictionary& dictionary, Network& network)
      : config_(config), dictionary_(dictionary), network_(network) {}

  // Errors: KINGLET_INVALID_CHECKPOINT for impossible bands and a dictionary of another size than
  // the softmax.
  Result<AdaptiveEmbedding> DescribeEmbedding();
  Result<AdaptiveSoftmax> DescribeSoftmax();
  // Checks that the softmax's copies of tied tensors equal the embedding's. Errors:
  // KINGLET_INVALID_CHECKPOINT naming the first copy that differs. REQUIRES: the network's
  // CheckNames found nothing.
  Status CheckTies() const;

  uint32_t words() const { return static_cast<uint32_t>(words_); }  // 0: unknown

 private:
  // Words [first, first + size); their rows have `columns` entries.
  struct Band {
    uint64_t first, size, columns;
  };

  Result<std::vector<Band>> BandsOf(const FairseqBands& bands, uint32_t width,
                                    const char* name) const;
  Status FindWords();
  Status DescribeCharacterEmbedding(AdaptiveEmbedding& embedding);
  Status DescribeAdaptiveEmbedding(AdaptiveEmbedding& embedding);
  void DescribePlainEmbedding(AdaptiveEmbedding& embedding);
  Status DescribeAdaptiveSoftmax(AdaptiveSoftmax& softmax);
  void DescribeHead(AdaptiveSoftmax& softmax, uint64_t size, uint64_t tails);
  SoftmaxTail DescribeTail(const Band& band, size_t index);
  void DescribePlainSoftmax(AdaptiveSoftmax& softmax);
  void ShareTables();
  void MarkInputUnused();
  TensorId SoftmaxTable(const std::string& copy, const Shape& shape, size_t band);
  const CheckpointTensor* SoftmaxProjection(const std::string& copy, const Shape& shape,
                                            size_t band);
  std::optional<uint64_t> OutputWords() const;
  void DescribeProjectOut(AdaptiveSoftmax& softmax);
  void NoteTie(const std::string& copy, const Shape& shape, const CheckpointTensor* original);

  const FairseqConfig& config_;
  const FairseqDictionary& dictionary_;
  Network& network_;
  uint64_t words_ = 0;
  bool replaced_ = false;  // a recipe makes the embedding
  // By bin of the embedding.
  std::vector<EmbeddingBin> bins_;
  std::vector<const CheckpointTensor*> tables_, projections_;
  const CheckpointTensor* project_out_ = nullptr;  // before the softmax
  // The softmax's copy and the embedding's original.
  std::vector<std::pair<const CheckpointTensor*, const CheckpointTensor*>> ties_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_TABLES_H_
