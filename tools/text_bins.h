// The bins of a text's losses that an option --by names, for `score` and `diff`.
#ifndef KINGLET_TOOLS_TEXT_BINS_H_
#define KINGLET_TOOLS_TEXT_BINS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/arguments.h"
#include "tools/loss_bins.h"
#include "tools/whole_words.h"

namespace kinglet {

struct BinOptions {
  std::string by;            // "frequency", "previous" or "gap"; empty: no bins
  std::string counts;        // path of the words' counts; empty: the vocabulary's order
  bool whole_words = false;  // bins of words, of which tokens may be parts
  std::string bins;  // counts at which bins begin, "10,100"; empty: ten bins of equally many tokens
};
// Declares --by, --counts and --bins. `options` outlives the parsing.
void AddBinOptions(Arguments& arguments, BinOptions& options);
// A usage error for options that do not go together.
Status CheckBinOptions(const BinOptions& options);

class TextBins {
 public:
  // The model outlives the bins. Errors: those of CountsOfWords and WholeWords::Create;
  // KINGLET_UNSUPPORTED for counts of words that the model does not know.
  static Result<TextBins> Create(const BinOptions& options, const Model& model);

  // Begins another text, with a fresh state.
  void BeginText();
  // A token of the text that was fed, but not scored.
  void Skip(uint32_t id);
  // `typed`: how an unknown word was typed; may be empty.
  void Add(uint32_t id, double logprob, std::string_view typed = {});
  // After the last token.
  std::vector<LossBin> Bins();

 private:
  explicit TextBins(const Model& model);
  Status ReadWholeWords(const BinOptions& options, const Model& model);
  void AddPart(uint32_t id, const ScoredToken* scored, std::string_view typed);
  void AddWord(const std::optional<WholeWord>& word);
  void SkipNumber(uint32_t number);
  void AddNumber(uint32_t number, double logprob);

  // Words have numbers: ids, or of whole words those of their spellings.
  std::optional<WholeWords> words_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::optional<uint32_t> uncounted_;  // of all words without a count; nullopt: each has a number
  std::optional<uint32_t> end_of_line_;
  std::optional<uint32_t> begin_;     // the token before a text of which none is skipped
  std::optional<uint32_t> previous_;  // the token before the next one
  bool by_previous_ = false;
  std::optional<FrequencyBins> frequency_;
  std::optional<CountBins> counted_;
  std::optional<GapBins> gaps_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TEXT_BINS_H_
