// The loss of a text's tokens, divided into bins by the frequency of their words, or by the
// distance to the word's last occurrence: figures of the MicroNet and Adaptive Input papers (Yan et
// al. 2020; Baevski and Auli 2019).
#ifndef KINGLET_TOOLS_LOSS_BINS_H_
#define KINGLET_TOOLS_LOSS_BINS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/accounting/exact_sum.h"
#include "tools/json_lines.h"

namespace kinglet {

struct LossBin {
  // A range of values; the words without an earlier occurrence; the unknown word alone, without
  // `from` and `to`.
  enum class Kind { kRange, kNever, kUnknown };

  uint64_t from = 0;
  std::optional<uint64_t> to;  // the bin's last value; nullopt means no end
  uint64_t tokens = 0;
  ExactSum logprob;
  Kind kind = Kind::kRange;

  // Mean loss of the bin's tokens.
  double nll() const { return (0.0 - logprob.Value()) / static_cast<double>(tokens); }
  // For people: "4-7", "100 and more", "never before", "unknown".
  std::string Range() const;
};

// The first members of a bin's line: "by" to "tokens".
void BeginBinLine(const std::string& by, const LossBin& bin, JsonLine& line);
// The line that `score --by BY --json` prints.
std::string LossBinJson(const std::string& by, const LossBin& bin, int digits);

// Bins of about equally many tokens by the rank of their word, from 0 for the most frequent.
class FrequencyBins {
 public:
  static constexpr uint64_t kBins = 10;

  // rank_of[id]: each of 0..V-1 once.
  explicit FrequencyBins(std::vector<uint32_t> rank_of);

  // REQUIRES: id < V.
  void Add(uint32_t id, double logprob);

  // All tokens of a word are in one bin: that of the tenth of all tokens in which the tokens of
  // more frequent words end. So a bin may be larger than a tenth, and the next ones smaller or
  // empty. The bins together have all ranks.
  std::vector<LossBin> Bins() const;

 private:
  struct Word {
    uint64_t tokens = 0;
    ExactSum logprob;
  };
  std::vector<uint32_t> rank_of_;
  std::vector<Word> words_;  // by rank
};

// Bins by the count of a word in another text, and one of the unknown word. Bins without tokens are
// omitted.
class CountBins {
 public:
  // counts[id]; bins begin at 0 and at `begins`, which ascend.
  CountBins(std::vector<uint64_t> counts, std::vector<uint64_t> begins,
            std::optional<uint32_t> unknown);

  // REQUIRES: id < counts.size().
  void Add(uint32_t id, double logprob);
  std::vector<LossBin> Bins() const;

 private:
  std::vector<uint64_t> counts_, begins_;
  std::optional<uint32_t> unknown_;
  std::vector<LossBin> bins_;  // in ascending order of counts, then that of the unknown word
};

// "10,100": ascending numbers above 0. KINGLET_INVALID_ARGUMENT for another text.
Result<std::vector<uint64_t>> ParseBins(const std::string& text);

// Bins by the distance to the word's last occurrence in its text: 1, 2-3, 4-7, and so on; last, for
// words that did not occur before, a bin without an end, which begins beyond the others. Bins
// without tokens are omitted.
class GapBins {
 public:
  // Larger ids may follow; each makes the memory grow.
  explicit GapBins(uint32_t vocabulary_size) : last_(vocabulary_size) {}

  // Begins another text.
  void BeginText() { text_begin_ = position_; }
  // A token of the text that is not scored.
  void Skip(uint32_t id) { Last(id) = ++position_; }
  void Add(uint32_t id, double logprob);
  std::vector<LossBin> Bins() const;

 private:
  struct Bin {
    uint64_t tokens = 0;
    ExactSum logprob;
  };
  uint64_t& Last(uint32_t id);

  std::vector<uint64_t> last_;  // by id: last position, from 1 over all texts; 0 means never
  uint64_t position_ = 0, text_begin_ = 0;
  std::array<Bin, 64> bins_;  // by the logarithm of the distance
  Bin never_;
};

// The rank of each id is its number, as in vocabularies sorted by frequency.
std::vector<uint32_t> RanksByOrder(uint32_t vocabulary_size);

// The count of each id in the file at `path`, lines "word count"; 0 without one. Words that the
// vocabulary lacks are omitted, and the counts of a word that occurs again are added up. Errors:
// those of reading the file; KINGLET_INVALID_ARGUMENT naming the line that has another form.
Result<std::vector<uint64_t>> CountsOfWords(const std::string& path, const Vocabulary& vocabulary);

// The lines "word count" of the file at `path`, in their order. Errors: those of CountsOfWords, but
// any words may be in it.
Result<std::vector<std::pair<std::string, uint64_t>>> ReadCounts(const std::string& path);

// The rank of each id in the order of counts. Of equal counts the lower id is first.
std::vector<uint32_t> RanksByCounts(const std::vector<uint64_t>& counts);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LOSS_BINS_H_
