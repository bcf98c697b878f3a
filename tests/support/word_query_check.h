// The queries that look for words, compared with brute force: with results computed as plainly as
// possible from all words' log-probabilities and texts.
#ifndef KINGLET_TESTS_SUPPORT_WORD_QUERY_CHECK_H_
#define KINGLET_TESTS_SUPPORT_WORD_QUERY_CHECK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/queries/query_options.h"

namespace kinglet {

struct WordQueryCheckOptions {
  EmptyCache empty_cache = EmptyCache::kReference;
  uint32_t states = 20;     // after the last tokens of the text
  uint32_t every_word = 1;  // states whose intervals are checked for every word
  uint32_t words = 20;      // checked in each of the others
  uint64_t seed = 1;        // of the queries
};

// A kind of query: how often it was made, and its operations as a fraction of those of the full
// distribution after the same token, without an earlier query: of all log-probabilities, or, for
// sums of probabilities and the nucleus, of all probabilities.
struct WordQueryCheck {
  uint64_t made = 0, differ = 0, measured = 0;  // measured: queries whose work is below
  double mean_work = 0, largest_work = 0;
  bool opens_more = false;  // a cluster, or the cache, that the full distribution does not
};

struct WordQueryReport {
  uint64_t states = 0;
  std::map<std::string, WordQueryCheck> kinds;
  std::string first_difference;  // "" if all answers are equal
};

// Runs the text through the model and asks after each of its last tokens. Errors: those of the
// session; KINGLET_INVALID_ARGUMENT for a text that is too short.
Result<WordQueryReport> CheckWordQueries(const std::shared_ptr<const Model>& model,
                                         std::span<const uint32_t> text,
                                         const WordQueryCheckOptions& options);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_WORD_QUERY_CHECK_H_
