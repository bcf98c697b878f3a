#include "tests/support/recurrent_cases.h"

#include <cstdint>
#include <string>

#include "tests/support/case_builder.h"

namespace kinglet {
namespace {

// `gates` times n values; pre-activations up to 8, where the functions are flat.
BufferId PreActivations(CaseBuilder& builder, const std::string& name, uint64_t gates, uint64_t n,
                        Fill fill) {
  return builder.Given(name, builder.RandomFloats(gates * n, fill, 4.0f));
}

double Tolerance(Fill fill) {
  return fill == Fill::kRandom || fill == Fill::kZero ? 1e-9 : kNotComparable;
}

OpCase LstmCase(const std::string& prefix, uint64_t n, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), static_cast<int>(fill)}), n);
  LstmGates op{};
  op.input = PreActivations(builder, "input", 4, n, fill);
  op.recurrent = PreActivations(builder, "recurrent", 4, n, Fill::kRandom);
  op.cell = builder.Floats("cell", n, fill, true);
  op.hidden = builder.Floats("hidden", n, Fill::kRandom, true);
  return builder.Finish(op, Tolerance(fill));
}

OpCase GruCase(const std::string& prefix, uint64_t n, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), static_cast<int>(fill)}), n);
  GruGates op{};
  op.input = PreActivations(builder, "input", 3, n, Fill::kRandom);
  op.recurrent = PreActivations(builder, "recurrent", 3, n, fill);
  op.hidden = builder.Floats("hidden", n, fill, true);
  return builder.Finish(op, Tolerance(fill));
}

OpCase RnnCase(const std::string& prefix, uint64_t n, bool relu, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), relu, static_cast<int>(fill)}), n);
  RnnGates op{};
  op.input = PreActivations(builder, "input", 1, n, fill);
  op.recurrent = PreActivations(builder, "recurrent", 1, n, fill);
  op.hidden = builder.Floats("hidden", n, Fill::kRandom, true);
  op.relu = relu;
  return builder.Finish(op, Tolerance(fill));
}

OpCase QrnnCase(const std::string& prefix, uint64_t n, bool previous, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), previous, static_cast<int>(fill)}),
                      n);
  QrnnGates op{};
  op.input = PreActivations(builder, "input", 3, n, fill);
  if (previous) op.previous = PreActivations(builder, "previous", 3, n, Fill::kRandom);
  op.cell = builder.Floats("cell", n, fill, true);
  op.hidden = builder.Floats("hidden", n, Fill::kRandom);
  return builder.Finish(op, Tolerance(fill));
}

}  // namespace

void AddRecurrentEdges(std::vector<OpCase>& cases) {
  for (const uint64_t n : kLengths) {
    for (const Fill fill : {Fill::kRandom, Fill::kSpecial, Fill::kZero, Fill::kTiny}) {
      cases.push_back(LstmCase("LstmGates", n, fill));
      cases.push_back(GruCase("GruGates", n, fill));
      for (const bool yes : {false, true}) {
        cases.push_back(RnnCase("RnnGates", n, yes, fill));
        cases.push_back(QrnnCase("QrnnGates", n, yes, fill));
      }
    }
  }
}

// AWD-LSTM of Penn Treebank: 1,150 units; its QRNN of WikiText-103: 2,500.
void AddRealisticRecurrentCases(std::vector<OpCase>& cases) {
  cases.push_back(LstmCase("lstm.awd", 1150, Fill::kRandom));
  cases.push_back(QrnnCase("qrnn.awd", 2500, true, Fill::kRandom));
}

}  // namespace kinglet
