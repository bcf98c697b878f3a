// The loss of documents. Each document is a stream of its own.
#ifndef KINGLET_TOOLS_DOCUMENT_SCORER_H_
#define KINGLET_TOOLS_DOCUMENT_SCORER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/texts/text_size.h"
#include "kinglet/status.h"
#include "runtime/sentence_scorer.h"
#include "runtime/typing/letter_model.h"
#include "tools/batch_scorer.h"
#include "tools/document_reader.h"
#include "tools/run_options.h"

namespace kinglet {

struct DocumentLoss {
  uint64_t scored = 0;     // tokens that have a log-probability
  uint64_t unknown = 0;    // scored tokens that are the unknown word
  double sum = 0;          // of negative log-probabilities
  double unknown_sum = 0;  // of those of unknown words
  double spelling = 0;     // negative log-probability of the unknown words' letters
  TextSize size = {};      // of the text and its end
  // The model, of several; or no model, and nothing else is known.
  static constexpr uint32_t kNoRoute = UINT32_MAX;
  uint32_t route = 0;
  double nll() const { return sum / static_cast<double>(scored); }  // NaN if nothing was scored
  double perplexity() const;
};

// What documents are ranked by; less is better. In the first two an unknown word costs the
// unknown word and its letters, and they can be compared between tokenizers. The last one is of the
// known words only; it is infinite if there are none.
enum class RankBy : uint8_t { kBitsPerByte, kWordPerplexity, kPerplexity, kKnownPerplexity };
inline constexpr std::array<const char*, 4> kRankNames = {"bits_per_byte", "ppl_per_word", "ppl",
                                                          "ppl_without_oov"};
double RankOf(const DocumentLoss& loss, RankBy by);

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

  // One loss for each document, the same for any number of lanes and threads. A document that
  // `omits` says is only tokenized, and its loss is infinite. Errors: those of reading text and of
  // scoring, naming `input_name` and the line.
  using Omits = std::function<bool(const Document& document)>;
  Result<std::vector<DocumentLoss>> Score(
      const std::string& input_name, std::span<const Document> documents,
      const Omits& omits = [](const Document&) { return false; });

  // Called with the number of tokens that were scored so far.
  void OnProgress(std::function<void(uint64_t)> report) { report_ = std::move(report); }

 private:
  DocumentScorer(std::shared_ptr<const Model> model, SentenceScorer scorer,
                 const DocumentBlocks& blocks);
  // The tokens of a document. Sets the members of `loss` that need no model.
  Result<std::vector<uint32_t>> StreamOf(const std::string& input_name, const Document& document,
                                         DocumentLoss& loss);
  // The loss of a document that is not scored.
  void Omit(const std::vector<uint32_t>& stream, DocumentLoss& loss) const;
  double SpellingOf(std::string_view word);

  std::shared_ptr<const Model> model_;
  BatchScorer scorer_;
  SentenceFrame frame_;
  std::optional<uint32_t> unknown_;
  PieceMarks marks_;
  std::optional<typing::LetterModel> letters_;  // of the vocabulary; made for the first word
  DocumentBlocks blocks_;
  std::function<void(uint64_t)> report_ = [](uint64_t /*tokens*/) {};
  uint64_t scored_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_DOCUMENT_SCORER_H_
