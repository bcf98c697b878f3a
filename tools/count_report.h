// What `kinglet count` prints: one set of rules, or both side by side with the reason for every
// difference. Pure functions from counts to text.
#ifndef KINGLET_TOOLS_COUNT_REPORT_H_
#define KINGLET_TOOLS_COUNT_REPORT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/ledger.h"
#include "runtime/accounting/meter.h"
#include "runtime/accounting/micronet.h"
#include "tools/coded_tables.h"

namespace kinglet {

// Of translations: what a source token takes on its way through the encoder, beside what is counted
// of a target token.
struct EncoderCount {
  uint64_t sentences = 0, source_tokens = 0, target_tokens = 0;
  std::vector<Component> components;
  OperationTally operations;  // their sum
  double total = 0;           // as the rules weigh it
  // A sentence with its translation, where a target token takes so much.
  double PerSentence(double target_total) const {
    return (total * static_cast<double>(source_tokens) +
            target_total * static_cast<double>(target_tokens)) /
           static_cast<double>(sentences);
  }
};

// Where the numbers come from, for the report's reader.
struct CountSource {
  std::string backend;
  std::string paths;  // "1,400 tokens of ids.txt from a fresh stream, ..."
  std::string bins;   // how many tokens lie in each: "1316,59,25"
  std::vector<CodedTableFacts> tables = {};
  std::optional<EncoderCount> encoder = {};
};

// Bytes of the file, by what they are for.
struct ExecutedStorage {
  uint64_t nonzero = 0, total = 0;            // parameters, all of them
  uint64_t values = 0, mask = 0, scales = 0;  // bytes; values: codes and floats
  uint64_t file_size = 0;                     // the three and header, words, padding
  uint64_t Other() const { return file_size - values - mask - scales; }
};
ExecutedStorage ExecutedStorageOf(const Ledger& ledger, uint64_t nonzero, uint64_t total);

std::string ExecutedJson(const ExecutedCount& count, const ExecutedStorage& storage,
                         const CountSource& source);
std::string ExecutedText(const ExecutedCount& count, const ExecutedStorage& storage,
                         const CountSource& source);
std::string MicronetJson(const MicronetCount& count, const CountSource& source);
std::string MicronetText(const MicronetCount& count, const CountSource& source);

// A component under both rules; one that a rule does not have is zero there.
struct ComparedComponent {
  std::string name;
  OperationTally micronet, executed;
  std::string why;  // empty where the two agree
  double Difference() const { return executed.Total() - micronet.Total(); }
};
std::vector<ComparedComponent> Compare(const std::vector<Component>& micronet,
                                       const std::vector<Component>& executed);
// What was executed beyond the published count, or below it, for one reason; in the order of the
// components.
struct DifferenceReason {
  std::string why;
  OperationTally difference;
};
std::vector<DifferenceReason> SumByReason(const std::vector<ComparedComponent>& components);
std::string CompareJson(const std::vector<ComparedComponent>& components);
std::string CompareText(const std::vector<ComparedComponent>& components,
                        const CountSource& source);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_COUNT_REPORT_H_
