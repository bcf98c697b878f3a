// Compares the queries that look for words with brute force on one model and text, and prints a
// line for each kind of query.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "converters/texts/token_file.h"
#include "tests/support/word_query_check.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct CheckArguments {
  std::string model, ids, backend = "cpu";
  bool normalised = false, brief = false;
  WordQueryCheckOptions options;
};

Result<bool> CheckAndPrint(CheckArguments arguments) {
  ModelOptions opening;
  opening.backend = arguments.backend;
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(arguments.model, opening));
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ReadIds(arguments.ids));
  // A text that is too short is read again: the same words, with other states.
  const size_t text = ids.size();
  while (text > 0 && ids.size() < arguments.options.states) {
    ids.push_back(ids[ids.size() - text]);
  }
  arguments.options.empty_cache =
      arguments.normalised ? EmptyCache::kNormalised : EmptyCache::kReference;
  KINGLET_ASSIGN_OR_RETURN(const WordQueryReport report,
                           CheckWordQueries(model, ids, arguments.options));
  uint64_t made = 0, differ = 0;
  bool took_more = false;
  for (const auto& [kind, check] : report.kinds) {
    made += check.made;
    differ += check.differ;
    if (check.largest_work > 1 || check.opens_more) {
      took_more = true;
      std::fprintf(stderr, "%s takes more work than the full distribution\n", kind.c_str());
    }
    if (arguments.brief) continue;
    std::printf("%-20s %8llu made, %llu differ; work %.4f on average, %.4f at most\n", kind.c_str(),
                static_cast<unsigned long long>(check.made),
                static_cast<unsigned long long>(check.differ), check.mean_work, check.largest_work);
  }
  std::printf("%llu states, %llu queries, %llu differ from brute force%s%s\n",
              static_cast<unsigned long long>(report.states), static_cast<unsigned long long>(made),
              static_cast<unsigned long long>(differ),
              differ == 0 ? "" : ", first: ", report.first_difference.c_str());
  return differ == 0 && !took_more;
}

int Main(int argc, char** argv) {
  CheckArguments arguments;
  ArgumentParser program("Compare the queries that look for words with brute force",
                         "word_queries");
  program.Add("M.kgl", arguments.model, "model file").Required().Placeholder("");
  program.Add("IDS", arguments.ids, "file of token ids").Required().Placeholder("");
  program
      .Add("--states", arguments.options.states,
           "number of last tokens after which words are queried")
      .ShowDefault();
  program
      .Add("--every-word", arguments.options.every_word,
           "states whose intervals are checked for every word")
      .ShowDefault();
  program.Add("--words", arguments.options.words, "words whose intervals are, in the others")
      .ShowDefault();
  program.Add("--seed", arguments.options.seed, "of what is asked for").ShowDefault();
  program.Add("--backend", arguments.backend, "what computes").ShowDefault();
  program.AddFlag("--normalised", arguments.normalised, "an empty cache leaves the softmax alone");
  program.AddFlag("--brief", arguments.brief, "print the last line only");
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Result<bool> all_equal = CheckAndPrint(arguments);
  if (!all_equal.ok())
    std::fprintf(stderr, "word_queries: %s\n", all_equal.status().message().c_str());
  return all_equal.ok() && *all_equal ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
