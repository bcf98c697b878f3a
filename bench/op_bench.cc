// Times single operations at the sizes of real models, on every backend and every instruction set
// of this machine, in the cases that tests/kernels/conformance_test.cc compares bit for bit.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ref/ref.h"
#include "tests/support/op_cases.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet {
namespace {

// Bytes of the operands as the model file and the frame store them: the operation reads or writes
// them at least once. 0 for an embedding row, which touches one row of its table.
int64_t OperandBytes(const OpCase& op_case, const BufferLayout& layout) {
  if (std::holds_alternative<EmbedRow>(op_case.plan.nodes.front().op)) return 0;
  return static_cast<int64_t>(op_case.tensors->bytes() + layout.scratch_bytes + layout.state_bytes);
}

bool Register(const OpCase& op_case, const std::string& who, size_t real_bytes,
              const BufferLayout& layout, Result<std::vector<Kernel>> kernels) {
  if (!kernels.ok()) {
    std::fprintf(stderr, "%s on %s: %s\n", op_case.name.c_str(), who.c_str(),
                 kernels.status().message().c_str());
    return false;
  }
  const int64_t bytes = OperandBytes(op_case, layout);
  benchmark::RegisterBenchmark((op_case.name + "@" + who).c_str(), [&op_case, real_bytes, bytes,
                                                                    kernel = std::move(
                                                                        kernels->front())](
                                                                       benchmark::State& state) {
    OpRun run(op_case, real_bytes);
    run.Run(kernel);
    for (auto _ : state) {
      run.RunAgain(kernel);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(bytes * static_cast<int64_t>(state.iterations()));
  })->Unit(benchmark::kMicrosecond);
  return true;
}

bool RegisterAll(const std::vector<OpCase>& cases) {
  bool all = true;
  for (const OpCase& op_case : cases) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    all &= Register(op_case, "ref", sizeof(float), layout, ref::BindFloat(op_case.plan, layout));
#ifdef KINGLET_HAVE_CPU_BACKEND
    for (const cpu::Target target : cpu::SupportedTargets()) {
      if (target == cpu::Target::kScalar) continue;
      all &= Register(op_case, "cpu-" + std::string(cpu::TargetName(target)), sizeof(float), layout,
                      cpu::BindWith(cpu::FindVectorFunctions(target), op_case.plan, layout));
    }
#endif
  }
  return all;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const std::vector<kinglet::OpCase> cases = kinglet::RealisticOpCases();
  if (!kinglet::RegisterAll(cases)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
