#include "tools/count_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>

#include "tools/console.h"
#include "tools/folded_layers.h"
#include "tools/json_lines.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

// Enough digits for the exact value of a double.
constexpr int kExactDigits = 17;
constexpr size_t kComponentColumns = 40, kNumberColumns = 16;

std::string Fact(const char* name, const std::string& value) {
  char label[32];
  std::snprintf(label, sizeof(label), "%-18s", name);
  return label + DisplayText(value) + "\n";
}

std::string Aligned(const std::string& text, size_t columns) {
  return std::string(columns - std::min(columns, text.size()), ' ') + text;
}

std::string TallyColumns(const OperationTally& tally) {
  std::string text;
  for (const double number : {tally.multiplications, tally.additions, tally.others}) {
    text += Aligned(ShortNumber(number), kNumberColumns);
  }
  return text;
}

// Whether two numbers of equal layers differ by no more than their pruned weights explain.
bool IsNear(double a, double b) {
  constexpr double kNear = 0.02;
  return std::fabs(a - b) <= kNear * std::max(std::fabs(a), std::fabs(b));
}
bool IsNear(const OperationTally& a, const OperationTally& b) {
  return IsNear(a.multiplications, b.multiplications) && IsNear(a.additions, b.additions) &&
         IsNear(a.others, b.others);
}

// The rows of a table of components, with equal layers folded unless `all`.
template <class Part>
std::vector<FoldedRow> RowsOf(const std::vector<Part>& parts, bool all,
                              const std::function<bool(const Part&, const Part&)>& near) {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  return FoldLayers(names, [&](size_t a, size_t b) { return !all && near(parts[a], parts[b]); });
}

std::string ComponentTable(const std::vector<Component>& components, const OperationTally& total,
                           bool all) {
  const std::vector<FoldedRow> rows =
      RowsOf<Component>(components, all, [](const Component& a, const Component& b) {
        return IsNear(a.operations, b.operations) && IsNear(a.density, b.density);
      });
  std::string text = "\n" + FoldedNote(rows) + FittedText("component", kComponentColumns);
  for (const char* title : {"multiplications", "additions", "others", "density"}) {
    text += Aligned(title, kNumberColumns);
  }
  text += "\n";
  for (const FoldedRow& row : rows) {
    OperationTally sum;
    double density = 0;
    for (const size_t member : row.members) {
      sum += components[member].operations;
      density += components[member].density / static_cast<double>(row.members.size());
    }
    text += FittedText(row.name, kComponentColumns) + TallyColumns(sum) +
            Aligned(ShortNumber(density), kNumberColumns) + "\n";
  }
  return text + FittedText("total", kComponentColumns) + TallyColumns(total) + "\n";
}

void AppendTally(const OperationTally& tally, JsonLine& line) {
  line.Key("muls").Number(tally.multiplications).Key("adds").Number(tally.additions);
  line.Key("others").Number(tally.others);
}

// `weighs`: the rules weigh multiplications by their bits.
void AppendComponents(const std::vector<Component>& components, bool weighs, JsonLine& line) {
  line.Key("components").BeginArray();
  for (const Component& component : components) {
    line.BeginObject().Key("name").Text(component.name);
    AppendTally(component.operations, line);
    line.Key("density").Number(component.density);
    line.Key("useful_muls").Number(component.useful_multiplications);
    if (weighs) line.Key("bits").Integer(static_cast<uint64_t>(component.bits));
    line.EndObject();
  }
  line.EndArray();
}

// The encoder's part of the report; `target_total` is the total per target token.
void AppendEncoder(const CountBasis& basis, double target_total, bool weighs, JsonLine& line) {
  if (!basis.encoder) return;
  const EncoderCount& encoder = *basis.encoder;
  line.Key("encoder").BeginObject();
  AppendTally(encoder.operations, line);
  line.Key("total").Number(encoder.total);
  AppendComponents(encoder.components, weighs, line);
  line.EndObject().Key("sentences").Integer(encoder.sentences);
  line.Key("source_tokens").Integer(encoder.source_tokens);
  line.Key("target_tokens").Integer(encoder.target_tokens);
  line.Key("per_sentence").Number(encoder.PerSentence(target_total));
}

std::string EncoderFacts(const CountBasis& basis, double target_total) {
  if (!basis.encoder) return "";
  const EncoderCount& encoder = *basis.encoder;
  if (encoder.masked) {
    return Fact("reading", ShortNumber(encoder.total) + " operations for each of " +
                               Grouped(encoder.source_tokens) + " tokens") +
           Fact("per text", ShortNumber(encoder.PerSentence(target_total)) +
                                " operations, mean of " + Grouped(encoder.sentences) +
                                (encoder.sentences == 1 ? " text" : " texts"));
  }
  return Fact("encoder", ShortNumber(encoder.total) + " operations for each of " +
                             Grouped(encoder.source_tokens) + " source tokens; " +
                             Grouped(encoder.target_tokens) + " target tokens") +
         Fact("per sentence", ShortNumber(encoder.PerSentence(target_total)) +
                                  " operations, mean of " + Grouped(encoder.sentences) +
                                  " sentences");
}

std::string EncoderTable(const CountBasis& basis) {
  if (!basis.encoder) return "";
  return ComponentTable(basis.encoder->components, basis.encoder->operations, basis.all_layers);
}

// Why the two rules differ, by the last part of a component's name; "" stands for products with
// weights. docs/ACCOUNTING.md has the formulas.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kReasons = {{
    {"norm1", "mean, variance, gain and bias as computed, 8 n + 2, not 6 n"},
    {"norm2", "mean, variance, gain and bias as computed, 8 n + 2, not 6 n"},
    {"norm_source", "mean, variance, gain and bias as computed, 8 n + 2, not 6 n"},
    {"final_norm", "mean, variance, gain and bias as computed, 8 n + 2, not 6 n"},
    {"query_positions", "every head multiplies the positions; the notebook counts one head"},
    {"query_keys", "slots before the stream are skipped while the window fills"},
    {"values", "slots before the stream are skipped while the window fills"},
    {"scale", "free in the notebook"},
    {"rescale", "free in the notebook: integer sums become floats"},
    {"dequantise", "free in the notebook: codes become floats"},
    {"decode", "free in the notebook: stored integers become floats"},
    {"fixed_point", "free in the notebook: a tail's input is rounded"},
    {"quantise", "free in the notebook: activations are rounded"},
    {"quantise_weights", "free in the notebook: attention weights are rounded"},
    {"normaliser", "a maximum and a logarithm, no divisions: 3 n - 1 too"},
    {"distribution", "free in the notebook: every word's log-probability"},
    {"", "dense planes multiply and add zeros too"},
}};

std::string_view ReasonOf(std::string_view name) {
  if (name == "cache.weights.softmax") {
    return "maximum subtracted, no divisions: 4 n - 2 of the stored pairs, not 3 n - 1 of all; n = "
           "0 "
           "makes the notebook's -1";
  }
  if (name == "cache.weights.rescale") {
    return "free in the notebook: theta, and integer sums become floats";
  }
  if (name == "cache.weights") return "pairs that are not stored yet are skipped";
  if (name.ends_with(".attention.softmax") &&
      (name.starts_with("encoder.") || name.ends_with(".source.attention.softmax"))) {
    return "maximum subtracted: 5 n - 2, not 3 n - 1";
  }
  if (name.ends_with(".attention.softmax")) {
    return "every head has one and subtracts the maximum; the notebook counts one head";
  }
  const std::string_view last = name.substr(name.rfind('.') + 1);
  for (const auto& [part, reason] : kReasons) {
    if (part == last || part.empty()) return reason;
  }
  return "";
}

}  // namespace

ExecutedStorage ExecutedStorageOf(const Ledger& ledger, uint64_t nonzero, uint64_t total) {
  return {nonzero,
          total,
          ledger.Total(LedgerPart::kCodes) + ledger.Total(LedgerPart::kValues),
          ledger.Total(LedgerPart::kMask),
          ledger.Total(LedgerPart::kScales),
          ledger.Total()};
}

ExecutedStorage ExecutedStorageOf(const Model& model, std::span<const uint64_t> nonzeros) {
  const std::span<const TensorView> weights = model.plan().weights;
  uint64_t total = 0, nonzero = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    total += Parameters(weights[i]);
    if (!weights[i].derived) nonzero += nonzeros[i];
  }
  return ExecutedStorageOf(model.file().ledger(), nonzero, total);
}

CountBasis CountBasisOf(const Model& model, std::string paths,
                        std::span<const uint64_t> bin_counts) {
  CountBasis basis = {std::string(model.backend().name), std::move(paths), "",
                      CodedTablesOf(model.file())};
  for (const uint64_t count : bin_counts) {
    basis.bins += (basis.bins.empty() ? "" : ",") + std::to_string(count);
  }
  return basis;
}

std::string FullQueryText(const Plan& plan) {
  if (plan.classifier) return "the scores of all classes";
  return plan.clusters.empty() ? "only its vector" : "the full distribution";
}

std::string StreamPathsText(uint64_t tokens, const std::string& input_name,
                            const std::string& query) {
  return Grouped(tokens) + " tokens of " + input_name + " from a fresh stream, " + query +
         " after each";
}

std::string ExecutedJson(const ExecutedCount& count, const ExecutedStorage& storage,
                         const CountBasis& basis) {
  JsonLine line(kExactDigits);
  line.Key("rules").Text("executed").Key("params").BeginObject();
  line.Key("nonzero").Integer(storage.nonzero).Key("total").Integer(storage.total);
  line.Key("size").Integer(storage.values).Key("mask").Integer(storage.mask);
  line.Key("quantisation").Integer(storage.scales).Key("other").Integer(storage.Other());
  line.Key("total_size").Integer(storage.file_size).EndObject();
  line.Key("ops").BeginObject().Key("muls").Number(count.operations.multiplications);
  line.Key("muls_weighted").Number(count.operations.multiplications);
  line.Key("adds").Number(count.operations.additions);
  line.Key("others").Number(count.operations.others);
  line.Key("total").Number(count.operations.Total());
  line.Key("useful_muls").Number(count.useful_multiplications).EndObject();
  line.Key("score").Null();
  AppendComponents(count.components, false, line);
  AppendEncoder(basis, count.operations.Total(), false, line);
  AppendCodedTables(basis.tables, line);
  line.Key("backend").Text(basis.backend).Key("paths").Text(basis.paths);
  return line.Finish();
}

std::string ExecutedText(const ExecutedCount& count, const ExecutedStorage& storage,
                         const CountBasis& basis) {
  std::string text = Fact("rules", "executed: operations that this build runs for one token") +
                     Fact("backend", basis.backend) + Fact("paths", basis.paths);
  text += Fact("parameters",
               Grouped(storage.total) + ", of which " + Grouped(storage.nonzero) + " are not zero");
  text += Fact("bytes", Grouped(storage.file_size) + ": values " + Grouped(storage.values) +
                            ", masks " + Grouped(storage.mask) + ", scales " +
                            Grouped(storage.scales) + ", other " + Grouped(storage.Other()));
  text +=
      Fact("operations", ShortNumber(count.operations.Total()) +
                             (basis.encoder && basis.encoder->masked ? " for each answer" : ""));
  text += Fact("multiplications",
               ShortNumber(count.operations.multiplications) + ", of which " +
                   ShortNumber(count.useful_multiplications) +
                   " by weights that are not zero (dense planes multiply zeros too)");
  return text + EncoderFacts(basis, count.operations.Total()) +
         ComponentTable(count.components, count.operations, basis.all_layers) +
         EncoderTable(basis) + CodedTablesText(basis.tables);
}

std::string MicronetJson(const MicronetCount& count, const CountBasis& basis) {
  JsonLine line(kExactDigits);
  line.Key("rules").Text("micronet-2019").Key("params").BeginObject();
  line.Key("nonzero").Integer(count.storage.nonzero).Key("total").Integer(count.storage.total);
  line.Key("size").Number(count.storage.size).Key("mask").Number(count.storage.mask);
  line.Key("quantisation").Number(count.storage.quantisation);
  line.Key("codes").Number(count.storage.codes);
  line.Key("total_size").Number(count.storage.TotalSize()).EndObject();
  line.Key("ops").BeginObject().Key("muls").Number(count.operations.multiplications);
  line.Key("muls_weighted").Number(count.operations.weighted_multiplications);
  line.Key("adds").Number(count.operations.additions);
  line.Key("others").Number(count.operations.others);
  line.Key("total").Number(count.operations.WeightedTotal()).EndObject();
  line.Key("score");
  if (basis.encoder) {
    line.Null();
  } else {
    line.Number(count.Score());
  }
  AppendComponents(count.components, true, line);
  AppendEncoder(basis, count.operations.WeightedTotal(), true, line);
  AppendCodedTables(basis.tables, line);
  line.Key("bits").BeginArray();
  for (const int bits : count.bits) line.Integer(static_cast<uint64_t>(bits));
  line.EndArray().Key("bins").Text(basis.bins);
  return line.Finish();
}

std::string MicronetText(const MicronetCount& count, const CountBasis& basis) {
  const MicronetStorage& storage = count.storage;
  std::string bits;
  for (const int width : count.bits) bits += (bits.empty() ? "" : ", ") + std::to_string(width);
  std::string text = Fact("rules", "micronet-2019; sizes in 32-bit words") +
                     Fact("bin frequencies", basis.bins) + Fact("bits", bits);
  text += Fact("parameters",
               Grouped(storage.total) + ", of which " + Grouped(storage.nonzero) + " are not zero");
  text += Fact("size", ShortNumber(storage.TotalSize()) + ": parameters " +
                           ShortNumber(storage.size) + ", masks " + ShortNumber(storage.mask) +
                           ", quantisers " + ShortNumber(storage.quantisation) +
                           (storage.codes > 0 ? ", codes " + ShortNumber(storage.codes) : ""));
  text += Fact("operations", ShortNumber(count.operations.WeightedTotal()) + ": multiplications " +
                                 ShortNumber(count.operations.weighted_multiplications) + " (" +
                                 ShortNumber(count.operations.multiplications) +
                                 ", each by its bits / 32), additions " +
                                 ShortNumber(count.operations.additions) + ", others " +
                                 ShortNumber(count.operations.others));
  if (basis.encoder) {
    text += EncoderFacts(basis, count.operations.WeightedTotal());
  } else {
    text += Fact("score", ShortNumber(count.Score()));
  }
  return text + ComponentTable(count.components, count.operations, basis.all_layers) +
         EncoderTable(basis) + CodedTablesText(basis.tables);
}

std::vector<ComparedComponent> Compare(const std::vector<Component>& micronet,
                                       const std::vector<Component>& executed) {
  std::vector<ComparedComponent> compared;
  std::map<std::string_view, size_t> index_of;
  for (const Component& component : executed) {
    index_of.emplace(component.name, compared.size());
    compared.push_back({component.name, {}, component.operations, ""});
  }
  for (const Component& component : micronet) {
    const auto [at, fresh] = index_of.emplace(component.name, compared.size());
    if (fresh) compared.push_back({component.name, {}, {}, ""});
    compared[at->second].micronet = component.operations;
  }
  for (ComparedComponent& component : compared) {
    const OperationTally &a = component.micronet, &b = component.executed;
    if (a.multiplications != b.multiplications || a.additions != b.additions ||
        a.others != b.others) {
      component.why = ReasonOf(component.name);
    }
  }
  return compared;
}

std::vector<DifferenceReason> SumByReason(const std::vector<ComparedComponent>& components) {
  std::vector<DifferenceReason> reasons;
  std::map<std::string_view, size_t> index_of;
  for (const ComparedComponent& component : components) {
    if (component.why.empty()) continue;
    const auto [at, fresh] = index_of.emplace(component.why, reasons.size());
    if (fresh) reasons.push_back({component.why, {}});
    reasons[at->second].difference += component.executed;
    reasons[at->second].difference += component.micronet * -1;
  }
  return reasons;
}

std::string CompareJson(const std::vector<ComparedComponent>& components) {
  std::string text;
  for (const ComparedComponent& component : components) {
    JsonLine line(kExactDigits);
    line.Key("name").Text(component.name).Key("micronet-2019").BeginObject();
    AppendTally(component.micronet, line);
    line.EndObject().Key("executed").BeginObject();
    AppendTally(component.executed, line);
    line.EndObject().Key("difference").Number(component.Difference());
    text += line.Key("why").Text(component.why).Finish();
  }
  return text;
}

std::string CompareText(const std::vector<ComparedComponent>& components, const CountBasis& basis) {
  std::string text = Fact("compared", "operations of one token, multiplications not weighted") +
                     Fact("backend", basis.backend) + Fact("paths", basis.paths) + "\n";
  const auto row = [](const std::string& name, const std::string& micronet,
                      const std::string& executed, const std::string& difference,
                      const std::string& why) {
    return FittedText(name, kComponentColumns) + Aligned(micronet, kNumberColumns) +
           Aligned(executed, kNumberColumns) + Aligned(difference, kNumberColumns) +
           (why.empty() ? "" : "  " + why) + "\n";
  };
  const std::vector<FoldedRow> rows = RowsOf<ComparedComponent>(
      components, basis.all_layers, [](const ComparedComponent& a, const ComparedComponent& b) {
        return IsNear(a.micronet, b.micronet) && IsNear(a.executed, b.executed) && a.why == b.why;
      });
  text += FoldedNote(rows);
  text += row("component", "micronet-2019", "executed", "difference", "why");
  double micronet = 0, executed = 0;
  for (const FoldedRow& folded : rows) {
    double row_micronet = 0, row_executed = 0;
    for (const size_t member : folded.members) {
      row_micronet += components[member].micronet.Total();
      row_executed += components[member].executed.Total();
    }
    micronet += row_micronet;
    executed += row_executed;
    text += row(folded.name, ShortNumber(row_micronet), ShortNumber(row_executed),
                ShortNumber(row_executed - row_micronet), components[folded.members[0]].why);
  }
  text += row("total", ShortNumber(micronet), ShortNumber(executed),
              ShortNumber(executed - micronet), "");
  text += "\n";
  for (const char* title : {"multiplications", "additions", "others"}) {
    text += Aligned(title, kNumberColumns);
  }
  text += "  differ because\n";
  for (const DifferenceReason& reason : SumByReason(components)) {
    text += TallyColumns(reason.difference) + "  " + reason.why + "\n";
  }
  return text;
}

}  // namespace kinglet
