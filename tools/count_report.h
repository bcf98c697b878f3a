// Output of `kinglet count`: the count by one set of rules, or by both side by side with the reason
// for every difference. Pure functions from counts to text.
#ifndef KINGLET_TOOLS_COUNT_REPORT_H_
#define KINGLET_TOOLS_COUNT_REPORT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/ledger.h"
#include "runtime/accounting/meter.h"
#include "runtime/accounting/micronet.h"
#include "runtime/model.h"
#include "tools/coded_tables.h"

namespace kinglet {

// The encoder's operations per source token, for translations; the rest of the report is per target
// token. For a masked model: operations per token of a text and per answer about the text.
struct EncoderCount {
  uint64_t sentences = 0, source_tokens = 0, target_tokens = 0;
  std::vector<Component> components;
  OperationTally operations;  // their sum
  double total = 0;           // weighted as the rules say
  bool masked = false;        // a masked model: tokens of texts, and answers about them
  // Mean operations of a sentence pair, if a target token takes `target_total`.
  double PerSentence(double target_total) const {
    return (total * static_cast<double>(source_tokens) +
            target_total * static_cast<double>(target_tokens)) /
           static_cast<double>(sentences);
  }
};

// The input and backend that the numbers of the report are for.
struct CountBasis {
  std::string backend;
  std::string paths;  // "1,400 tokens of ids.txt from a fresh stream, ..."
  std::string bins;   // number of tokens in each bin: "1316,59,25"
  std::vector<CodedTableFacts> tables = {};
  std::optional<EncoderCount> encoder = {};
  bool all_layers = false;  // the text lists equal layers one by one
};

CountBasis CountBasisOf(const Model& model, std::string paths,
                        std::span<const uint64_t> bin_counts);
// What a full query computes after each token: "the full distribution".
std::string FullQueryText(const Plan& plan);
// "1,400 tokens of ids.txt from a fresh stream, the full distribution after each".
std::string StreamPathsText(uint64_t tokens, const std::string& input_name,
                            const std::string& query);

// Parameters, and bytes of the file by purpose.
struct ExecutedStorage {
  uint64_t nonzero = 0, total = 0;            // parameters
  uint64_t values = 0, mask = 0, scales = 0;  // bytes; values: codes and floats
  uint64_t file_size = 0;                     // values, mask, scales, header, vocabulary, padding
  uint64_t Other() const { return file_size - values - mask - scales; }
};
ExecutedStorage ExecutedStorageOf(const Ledger& ledger, uint64_t nonzero, uint64_t total);
// `nonzeros`: CountNonzeros of the model's weights.
ExecutedStorage ExecutedStorageOf(const Model& model, std::span<const uint64_t> nonzeros);

std::string ExecutedJson(const ExecutedCount& count, const ExecutedStorage& storage,
                         const CountBasis& basis);
std::string ExecutedText(const ExecutedCount& count, const ExecutedStorage& storage,
                         const CountBasis& basis);
std::string MicronetJson(const MicronetCount& count, const CountBasis& basis);
std::string MicronetText(const MicronetCount& count, const CountBasis& basis);

// A component under both rules; zero under a rule that does not have it.
struct ComparedComponent {
  std::string name;
  OperationTally micronet, executed;
  std::string why;  // empty where the two agree
  double Difference() const { return executed.Total() - micronet.Total(); }
};
std::vector<ComparedComponent> Compare(const std::vector<Component>& micronet,
                                       const std::vector<Component>& executed);
// Executed minus published operations, summed over the components with the same reason. In the
// order of the components.
struct DifferenceReason {
  std::string why;
  OperationTally difference;
};
std::vector<DifferenceReason> SumByReason(const std::vector<ComparedComponent>& components);
std::string CompareJson(const std::vector<ComparedComponent>& components);
std::string CompareText(const std::vector<ComparedComponent>& components, const CountBasis& basis);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_COUNT_REPORT_H_
