// The two ends of a fairseq language model: an adaptive or plain embedding (AdaptiveInput) and an
// adaptive or plain softmax (AdaptiveSoftmax), with every way in which they share tables and
// projections.
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_TABLES_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_TABLES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "converters/families/draft_builder.h"
#include "converters/families/fairseq_config.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Claims tensors and describes them at once; what cannot be known because its tensor is at fault is
// left out. Use in the order of the functions.
class FairseqTables {
 public:
  // REQUIRES: both outlive it.
  FairseqTables(const FairseqConfig& config, DraftBuilder& builder)
      : config_(config), builder_(builder) {}

  // Errors: KINGLET_INVALID_CHECKPOINT for bands that cannot be; KINGLET_UNSUPPORTED for an
  // adaptive softmax behind a projection of its own (project_out_dim).
  Result<AdaptiveEmbedding> DescribeEmbedding();
  Result<AdaptiveSoftmax> DescribeSoftmax();
  // The softmax's copies of the embedding's tensors are the same. Errors:
  // KINGLET_INVALID_CHECKPOINT naming the first that is not. REQUIRES: all claimed tensors are
  // there.
  Status CheckTies() const;

  uint32_t words() const { return static_cast<uint32_t>(words_); }  // 0: not known

 private:
  // Words [first, first + size); their rows have `columns` numbers.
  struct Band {
    uint64_t first, size, columns;
  };

  Result<std::vector<Band>> BandsOf(const FairseqBands& bands, uint32_t width,
                                    const char* name) const;
  Status FindWords();
  Status DescribeAdaptiveEmbedding(AdaptiveEmbedding& embedding);
  void DescribePlainEmbedding(AdaptiveEmbedding& embedding);
  Status DescribeAdaptiveSoftmax(AdaptiveSoftmax& softmax);
  void DescribeHead(AdaptiveSoftmax& softmax, uint64_t size, uint64_t tails);
  SoftmaxTail DescribeTail(const Band& band, size_t index);
  void DescribePlainSoftmax(AdaptiveSoftmax& softmax);
  void NoteTie(const std::string& copy, const Shape& shape, const SourceTensor* original);

  const FairseqConfig& config_;
  DraftBuilder& builder_;
  uint64_t words_ = 0;
  // By bin of the embedding.
  std::vector<EmbeddingBin> bins_;
  std::vector<const SourceTensor*> tables_, projections_;
  // Softmax's and embedding's.
  std::vector<std::pair<const SourceTensor*, const SourceTensor*>> ties_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_TABLES_H_
