// The loss of documents. Each document is a stream of its own, and a session's lanes score many at
// once.
#ifndef KINGLET_TOOLS_DOCUMENT_SCORER_H_
#define KINGLET_TOOLS_DOCUMENT_SCORER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/sentence_scorer.h"
#include "tools/document_reader.h"
#include "tools/run_options.h"

namespace kinglet {

struct DocumentLoss {
  uint64_t scored = 0;   // tokens that have a log-probability
  uint64_t unknown = 0;  // scored tokens that are the unknown word
  double sum = 0;        // of negative log-probabilities
  double nll() const { return sum / static_cast<double>(scored); }  // NaN if nothing was scored
  double perplexity() const;
};

// How documents are split for a model with absolute positions: text blocks of `block` tokens with a
// fresh state, of which the first `context` are not scored again, as with `score --block
// --context`.
struct DocumentBlocks {
  std::optional<uint64_t> block;  // nullopt means the model's positions
  uint64_t context = 0;
};

class DocumentScorer {
 public:
  // A document begins and ends as a line does with `score --lines`; a newline in it is the end of a
  // line. A neural cache starts normalised. Errors: those of Session::Create;
  // KINGLET_INVALID_ARGUMENT for blocks of a model that needs none, or longer than its positions;
  // KINGLET_UNSUPPORTED for a model that has ids only.
  static Result<DocumentScorer> Create(const std::shared_ptr<const Model>& model,
                                       const RunOptions& run, const DocumentBlocks& blocks);

  // One loss for each document, the same for any number of lanes and threads. Errors: those of
  // reading text and of scoring, naming `input_name` and the line.
  Result<std::vector<DocumentLoss>> Score(const std::string& input_name,
                                          std::span<const Document> documents);

 private:
  DocumentScorer(std::shared_ptr<const Model> model, SentenceScorer scorer,
                 const DocumentBlocks& blocks);
  Result<std::vector<uint32_t>> StreamOf(const std::string& input_name,
                                         const Document& document) const;

  std::shared_ptr<const Model> model_;
  SentenceScorer scorer_;
  SentenceFrame frame_;
  std::optional<uint32_t> unknown_;
  DocumentBlocks blocks_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_DOCUMENT_SCORER_H_
