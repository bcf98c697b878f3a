// Prints the figures of the five papers that follow from shapes next to those that kinglet counts
// for the same shapes. No weights are needed; the papers' own are not available.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/paper_report.h"
#include "runtime/accounting/coded_ratio.h"
#include "runtime/accounting/micronet.h"
#include "tests/synthesis/coded_presets.h"
#include "tests/synthesis/presets.h"
#include "tests/synthesis/published_networks.h"
#include "tests/synthesis/published_totals.h"
#include "tests/synthesis/synthetic_plan.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

constexpr double kMillion = 1e6;
constexpr const char* kNoRule =
    "no rule of widths, groups and sharing gives the column; ours is a public implementation's";

std::string Digits(double number, int decimals) {
  char text[16];
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

// --- MicroNet ---

MicronetCount CountOf(const char* preset) {
  const SynthesisSpec spec = FindPreset(preset)->spec;
  const SyntheticPlan model(spec);
  return *CountMicronet2019(model.plan(), model.nonzeros, spec.bin_counts);
}

// A network of the tables 4 to 6. The paper rounds every figure but one, which it truncates.
void ReportDense(const DenseTotal& row, PaperReport& report) {
  const MicronetCount count = CountOf(row.preset);
  const double operations = count.operations.WeightedTotal() / kMillion;
  if (*row.parameters != 0) {
    report.Row(row.preset, "parameters", row.parameters,
               static_cast<double>(count.storage.total) / kMillion);
  }
  if (*row.millions == 0) return report.Ours(row.preset, "operations", operations);
  const bool truncated = row.preset == std::string("8.3M-cache2000");
  report.Row(row.preset, "operations", row.millions, operations,
             truncated ? "the paper truncates this number and rounds its other ones" : "");
}

void ReportMicronet(PaperReport& report) {
  report.Title(
      "MicroNet (Yan et al. 2020), tables 4 to 6: millions of parameters, operations of a token");
  for (const DenseTotal& row : kDenseTotals) ReportDense(row, report);
  report.Title(
      "MicroNet, table 2: millions of 32-bit values and of operations (of the best network it "
      "prints "
      "8.9; the notebook, the text and the README have 8.8)");
  for (const TableRow& row : kTable2) {
    const MicronetCount count = CountOf(row.preset);
    report.Row(row.preset, "size", Digits(row.size, 1), count.storage.TotalSize() / kMillion);
    report.Row(row.preset, "operations", Digits(row.operations, 1),
               count.operations.WeightedTotal() / kMillion);
  }
  report.Title("MicroNet, table 3: millions of parameters of the 8.3M network");
  const SyntheticPlan network(FindPreset("8.3M")->spec);
  double embedding = 0;
  for (const char* prefix : {"loss.layers.", "embed.", "loss.projections.", "loss.clusters."}) {
    embedding += static_cast<double>(network.ParametersOf(prefix));
  }
  for (const char* bias : {"loss.layers.0.bias", "loss.layers.1.bias", "loss.layers.2.bias"}) {
    embedding -= static_cast<double>(network.ParametersOf(bias));
  }
  const double all = static_cast<double>(CountOf("8.3M").storage.total);
  report.Row("embedding, projections, clusters", "parameters", kEmbeddingMillions,
             embedding / kMillion);
  report.Row("all others", "parameters", kOtherMillions, (all - embedding) / kMillion);
  report.Title("MicroNet, figure 2: millions of 32-bit values and of operations");
  const MicronetCount pruned = CountOf(kPipelinePruned.preset);
  report.Row(kPipelinePruned.preset, "size", Digits(kPipelinePruned.size, 1),
             pruned.storage.TotalSize() / kMillion);
  report.Row(kPipelinePruned.preset, "operations", Digits(kPipelinePruned.operations, 0),
             pruned.operations.WeightedTotal() / kMillion);
  report.Title("MicroNet, the notebooks: networks as submitted");
  for (const PrintedCount& row : kPrintedCounts) {
    const MicronetCount count = CountOf(row.preset);
    const bool best = row.preset == std::string("best");
    const double entries = best ? 1e-4 * row.nonzero : 5e-6 * row.total + 2;
    const double size_tolerance = entries * row.bits / 32;
    const char* const why = best ? "training met the pruner's targets within 0.01 %"
                                 : "sparsities are printed with five digits";
    report.Near(row.preset, "not zero", row.nonzero, static_cast<double>(count.storage.nonzero),
                entries, why);
    report.Near(row.preset, "size", row.total_size, count.storage.TotalSize(), size_tolerance, why);
    report.Near(row.preset, "operations", row.operations, count.operations.WeightedTotal(),
                entries + size_tolerance, why);
    report.Near(row.preset, "score", row.score, count.Score(),
                size_tolerance / 159e6 + (entries + size_tolerance) / 318e6, why);
  }
}

// --- adaptive inputs, DeFINE ---

void ReportAdaptiveInputs(PaperReport& report) {
  report.Title(
      "Adaptive inputs (Baevski & Auli 2019), tables 1, 3, 4 and 7: millions of parameters");
  for (const PublishedParameters& row : PublishedAdaptiveInputs()) {
    const SyntheticPlan model(Outline(row.network));
    report.Row(row.row + " (" + row.table + ")", "parameters", row.total,
               static_cast<double>(model.ParametersOf("")) / kMillion);
  }
}

void ReportDefine(PaperReport& report) {
  report.Title("DeFINE (Mehta et al. 2020), tables 1 and 2: millions of parameters");
  for (const PublishedParameters& row : PublishedDefine()) {
    const SyntheticPlan model(Outline(row.network));
    const auto millions = [&model](const char* prefix) {
      return static_cast<double>(model.ParametersOf(prefix)) / kMillion;
    };
    const std::string name = row.row + " (" + row.table + ")";
    report.Row(name, "context", row.context, millions("context."));
    report.Row(name, "input-output", row.ends, millions("input.") + millions("output."));
    if (row.unit.empty()) continue;
    report.Row(name, "unit", row.unit, millions("made."), kNoRule);
  }
}

// --- DPQ, slim embedding ---

CodedShape ShapeOf(const CodedSynthesisSpec& spec) {
  CodedShape shape;
  shape.rows = spec.vocabulary_size;
  shape.cols = spec.width;
  shape.positions = spec.input.positions;
  shape.pools = spec.input.pools;
  shape.length = spec.width / spec.input.positions;
  return shape;
}

void ReportDpq(PaperReport& report) {
  report.Title(
      "DPQ (Chen, Li & Sun 2020): compression of the embedding, 32 V (d + 1) / stored bits");
  const auto row = [&report](const std::string& name, double printed, const CodedShape& shape,
                             const std::string& reason) {
    const CodedRatios ratios = RatiosOf(shape);
    if (printed == 0) {
      report.Ours(name, "ratio", ratios.published);
    } else {
      report.Row(name, "ratio", Digits(printed, 1), ratios.published, reason);
    }
    report.Ours("  with 32 V d as the numerator", "ratio", ratios.plain);
  };
  for (const CodedRatioRow& published : kCodedRatios) {
    row(published.preset, published.printed, ShapeOf(FindCodedPreset(published.preset)->spec), "");
  }
  for (const CodedShapeRow& published : kCodedShapes) {
    CodedShape shape;
    shape.rows = published.words;
    shape.cols = published.width;
    shape.positions = published.positions;
    shape.pools.assign(published.shared ? 1 : published.positions, published.choices);
    shape.length = published.width / published.positions;
    row(published.name, published.printed, shape, published.reason);
  }
}

void ReportSlim(PaperReport& report) {
  report.Title(
      "Slim embedding (Li et al. 2018), tables 1 to 5: shares, and millions of parameters");
  for (const SlimShare& row : kSlimShares) {
    const double share = SlimRatio(row.sub_vectors, row.positions, row.words);
    report.Row(std::string("PTB, ") + std::to_string(row.units) + " units, " +
                   std::to_string(row.sub_vectors) + " sub-vectors",
               "per cent", row.printed, 100 * share);
  }
  for (const SlimTotal& row : kSlimTotals) {
    const SyntheticPlan model(FindCodedPreset(row.preset)->spec);
    report.Row(row.preset, "parameters", Digits(row.millions, 0),
               static_cast<double>(model.ParametersOf("")) / kMillion);
  }
  report.Line(
      "\nTable 7 (times of the output on their machine): docs/lab/measured_once.md has the "
      "same layer's here.");
}

int Run(const std::string& only) {
  PaperReport report;
  const auto wanted = [&only](const char* paper) { return only.empty() || only == paper; };
  if (wanted("micronet")) ReportMicronet(report);
  if (wanted("adaptive-inputs")) ReportAdaptiveInputs(report);
  if (wanted("define")) ReportDefine(report);
  if (wanted("dpq")) ReportDpq(report);
  if (wanted("slim")) ReportSlim(report);
  std::printf("%s\n%d numbers agree, %d differ for the reason given, %d disagree\n",
              report.text().c_str(), report.agreeing(), report.explained(), report.disagreeing());
  return report.disagreeing() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  kinglet::ArgumentParser program(
      "Prints the papers' numbers that follow from shapes next to ours; fails if one that should "
      "agree does not.",
      "papers");
  std::string only;
  program.Add("--only", only, "one paper's numbers")
      .OneOf({"micronet", "adaptive-inputs", "define", "dpq", "slim"});
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  return kinglet::Run(only);
}
