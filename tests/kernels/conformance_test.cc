// Every backend against the specification, one operation at a time: `ref` is what `cpu` equals bit
// for bit on every instruction set this machine has, and `ref64` is `ref` with less rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ref/ref.h"
#include "tests/support/op_cases.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::conformance_test {
namespace {

using Kernels = Result<std::vector<Kernel>>;

std::vector<OpCase> AllCases() {
  std::vector<OpCase> cases = EdgeOpCases();
  for (OpCase& op_case : RealisticOpCases()) cases.push_back(std::move(op_case));
  return cases;
}

OpRun RunOn(const OpCase& op_case, const BufferLayout& layout, size_t real_bytes,
            const Kernels& kernels) {
  OpRun run(op_case, real_bytes);
  EXPECT_EQ(run.layout().scratch_bytes, layout.scratch_bytes);
  run.Run(kernels.value().front());
  return run;
}

OpRun RunReference(const OpCase& op_case) {
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  return RunOn(op_case, layout, sizeof(float), ref::BindFloat(op_case.plan, layout));
}

// The largest normalised mean square error over the buffers.
double WorstError(const OpCase& op_case, const OpRun& run, const OpRun& expected) {
  double worst = 0;
  for (size_t id = 0; id < op_case.plan.buffers.size(); ++id) {
    const std::vector<double> values = run.Values(static_cast<BufferId>(id));
    const std::vector<double> wanted = expected.Values(static_cast<BufferId>(id));
    double error = 0, power = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += (values[i] - wanted[i]) * (values[i] - wanted[i]);
      power += wanted[i] * wanted[i];
    }
    const double normalised = error == 0 ? 0 : error / power;
    if (!(normalised <= worst)) worst = normalised;
  }
  return worst;
}

TEST(Conformance, FloatBackendsOfThisBuildEqualRef) {
  for (const OpCase& op_case : AllCases()) {
    const OpRun expected = RunReference(op_case);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    for (const Backend& backend : Backends()) {
      if (backend.real_bytes != sizeof(float)) continue;
      const Kernels kernels = backend.bind(op_case.plan, layout, {});
      ASSERT_TRUE(kernels.ok()) << op_case.name << " " << kernels.status().message();
      ASSERT_EQ(kernels->size(), 1u);
      const OpRun run = RunOn(op_case, layout, sizeof(float), kernels);
      EXPECT_EQ(run.Difference(expected), "") << op_case.name << " on " << backend.name;
    }
  }
}

// The kernel with the chunks of each phase run one by one, in an order that the seed shuffles, by
// two threads. `kernel` outlives it.
Kernel Scattered(const Kernel& kernel, uint64_t seed) {
  Kernel scattered;
  for (const Phase& phase : kernel.phases) {
    const auto run = [&phase, seed](std::span<StreamFrame> frames, Chunks) {
      if (phase.chunks == 1) return phase.run(frames, {0, 1});
      std::vector<size_t> order(phase.chunks);
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
      const auto run_every_other = [&](size_t from) {
        for (size_t i = from; i < order.size(); i += 2) phase.run(frames, {order[i], order[i] + 1});
      };
      std::thread other(run_every_other, 1);
      run_every_other(0);
      other.join();
    };
    scattered.phases.push_back({run});
  }
  return scattered;
}

TEST(Conformance, PiecesGiveTheSameBitsInAnyOrderAndInSeveralThreads) {
  size_t divided = 0;
  for (const OpCase& op_case : AllCases()) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    for (const Backend& backend : Backends()) {
      if (backend.real_bytes != sizeof(float)) continue;
      const Kernels kernels = backend.bind(op_case.plan, layout, {});
      ASSERT_TRUE(kernels.ok()) << op_case.name << " " << kernels.status().message();
      const auto has_chunks = [](const Phase& phase) { return phase.chunks > 1; };
      const auto& phases = kernels->front().phases;
      if (std::none_of(phases.begin(), phases.end(), has_chunks)) continue;
      ++divided;
      const OpRun expected = RunReference(op_case);
      OpRun run(op_case, sizeof(float));
      run.Run(Scattered(kernels->front(), divided));
      EXPECT_EQ(run.Difference(expected), "") << op_case.name << " on " << backend.name;
    }
  }
#ifdef KINGLET_HAVE_CPU_BACKEND
  EXPECT_GT(divided, 100u);
#endif
}

// The case with weights whose stored bytes are all zero; `storage` holds them.
OpCase WithoutWeights(const OpCase& op_case, std::vector<TensorView>& views,
                      std::deque<std::vector<std::byte>>& storage) {
  const auto blank = [&storage](std::span<const std::byte>& bytes) {
    storage.emplace_back(bytes.size());
    bytes = storage.back();
  };
  views.assign(op_case.plan.weights.begin(), op_case.plan.weights.end());
  for (TensorView& view : views) {
    if (auto* dense = std::get_if<DenseView>(&view.values)) blank(dense->bytes);
    if (auto* packed = std::get_if<PackedView>(&view.values)) {
      blank(packed->codes);
      blank(packed->scales.bytes);
    }
    // An embedding's codes say which rows are read, so they stay.
    auto* coded = std::get_if<CodedView>(&view.values);
    if (coded && std::holds_alternative<CodedSums>(op_case.plan.steps[0].op)) blank(coded->codes);
  }
  OpCase blanked = op_case;
  blanked.plan.weights = views;
  return blanked;
}

std::vector<MemoryRange> WeightsRead(const Kernel& kernel, uint32_t token, uint64_t position) {
  std::vector<MemoryRange> ranges = kernel.weights;
  if (kernel.token_weights) {
    for (const MemoryRange& range : kernel.token_weights(token)) ranges.push_back(range);
  }
  if (kernel.position_weights) {
    for (const MemoryRange& range : kernel.position_weights(position)) ranges.push_back(range);
  }
  return ranges;
}

// A kernel bound to nothing but zeros computes what the real one does once it is given the bytes
// that the real one says it reads: so it reads no weights besides.
TEST(Conformance, KernelsReportAllTheWeightMemoryThatTheyRead) {
  size_t reading = 0;
  for (const OpCase& op_case : AllCases()) {
    std::vector<TensorView> views;
    std::deque<std::vector<std::byte>> storage;
    const OpCase blanked = WithoutWeights(op_case, views, storage);
    for (const Backend& backend : Backends()) {
      if (backend.real_bytes != sizeof(float)) continue;
      const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
      const Kernels kernels = backend.bind(op_case.plan, layout, {});
      const Kernels blanks = backend.bind(blanked.plan, layout, {});
      ASSERT_TRUE(kernels.ok() && blanks.ok()) << op_case.name;
      const auto from = WeightsRead(kernels->front(), op_case.token, op_case.position);
      const auto to = WeightsRead(blanks->front(), op_case.token, op_case.position);
      ASSERT_EQ(from.size(), to.size()) << op_case.name << " on " << backend.name;
      reading += !from.empty();
      for (size_t i = 0; i < from.size(); ++i) {
        ASSERT_EQ(from[i].size(), to[i].size()) << op_case.name << " on " << backend.name;
        // The kernel's own memory is not constant; only the view of it is.
        std::copy(from[i].begin(), from[i].end(), const_cast<std::byte*>(to[i].data()));
      }
      const OpRun expected = RunOn(op_case, layout, sizeof(float), kernels);
      const OpRun run = RunOn(op_case, layout, sizeof(float), blanks);
      EXPECT_EQ(run.Difference(expected), "") << op_case.name << " on " << backend.name;
    }
  }
  EXPECT_GT(reading, 100u);
}

TEST(Conformance, Ref64IsRefWithLessRounding) {
  for (const OpCase& op_case : AllCases()) {
    if (op_case.ref64_tolerance < 0) continue;
    const OpRun expected = RunReference(op_case);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(double)).value();
    const Kernels kernels = ref::BindDouble(op_case.plan, layout);
    ASSERT_TRUE(kernels.ok()) << op_case.name;
    const OpRun run = RunOn(op_case, layout, sizeof(double), kernels);
    EXPECT_LE(WorstError(op_case, expected, run), op_case.ref64_tolerance) << op_case.name;
  }
}

#ifdef KINGLET_HAVE_CPU_BACKEND

// The cases and what ref makes of them.
struct Expected {
  std::vector<OpCase> cases = AllCases();
  std::vector<OpRun> runs;
  Expected() {
    for (const OpCase& op_case : cases) runs.push_back(RunReference(op_case));
  }
};

// How many cases differ from ref when run with these functions, up to `enough`; the first of them.
size_t CountDifferences(const cpu::VectorFunctions* functions, const Expected& expected,
                        size_t enough, std::string* first) {
  size_t differing = 0;
  for (size_t i = 0; i < expected.cases.size() && differing < enough; ++i) {
    const OpCase& op_case = expected.cases[i];
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    const OpRun run =
        RunOn(op_case, layout, sizeof(float), cpu::BindWith(functions, op_case.plan, layout));
    const std::string difference = run.Difference(expected.runs[i]);
    if (!difference.empty() && differing++ == 0) *first = op_case.name + ": " + difference;
  }
  return differing;
}

TEST(Conformance, EveryInstructionSetEqualsRef) {
  const Expected expected;
  for (const cpu::Target target : cpu::SupportedTargets()) {
    std::string first;
    EXPECT_EQ(CountDifferences(cpu::FindVectorFunctions(target), expected, 1, &first), 0u)
        << cpu::TargetName(target) << " " << first;
  }
}

// The comparison itself is under test: a fast kernel that is off by one unit in the last place of
// one element, or that writes one byte past its buffer, must be noticed.
const cpu::VectorFunctions* unbroken = nullptr;

void OffByOneUnit(const cpu::CodePanels& weight, const cpu::CodeVector* vectors, size_t count,
                  size_t chunk_pairs, const cpu::Finish& finish) {
  unbroken->integer_product(weight, vectors, count, chunk_pairs, finish);
  if (weight.rows == 0) return;
  for (size_t i = 0; i < count; ++i) {
    float& last = vectors[i].y[weight.rows - 1];
    last = std::nextafter(last, 1e30f);
  }
}

void WritesBeyond(const float* x, size_t n, float max_abs, float step, int16_t* codes) {
  unbroken->quantise(x, n, max_abs, step, codes);
  if (n % 32 != 0) codes[n] = 1;
}

TEST(Conformance, NoticesABrokenKernel) {
  unbroken = cpu::FindVectorFunctions(cpu::SupportedTargets().front());
  if (unbroken == nullptr) GTEST_SKIP() << "this machine has no vector target to break";
  const Expected expected;
  std::string first;
  ASSERT_EQ(CountDifferences(unbroken, expected, 1, &first), 0u) << first;

  cpu::VectorFunctions broken = *unbroken;
  broken.integer_product = OffByOneUnit;
  EXPECT_EQ(CountDifferences(&broken, expected, 100, &first), 100u);
  EXPECT_EQ(first.substr(0, 7), "MatVec/");

  broken = *unbroken;
  broken.quantise = WritesBeyond;
  EXPECT_EQ(CountDifferences(&broken, expected, 10, &first), 10u);
  EXPECT_EQ(first.substr(0, 9), "Quantise/");
}

// Each vector function in turn does nothing: were one not reached by any case, its equality with
// ref would be untested.
TEST(Conformance, ReachesEveryVectorFunction) {
  const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(cpu::SupportedTargets().front());
  if (functions == nullptr) GTEST_SKIP() << "this machine has no vector target";
  using F = cpu::VectorFunctions;
  static constexpr auto nothing = [](auto... arguments) { ((void)arguments, ...); };
  struct Omission {
    const char* name;
    void (*omit)(F& table);
  };
  const std::vector<Omission> omissions = {
      {"integer_product", [](F& f) { f.integer_product = nothing; }},
      {"decoded_product", [](F& f) { f.decoded_product = nothing; }},
      {"real_product", [](F& f) { f.real_product = nothing; }},
      {"coded_sums",
       [](F& f) {
         f.coded_sums = [](const cpu::CodeBlocks&, const uint64_t*, const float*, float,
                           const cpu::Finish&, float*) {};
       }},
      {"integer_dots",
       [](F& f) {
         f.integer_dots = [](const cpu::StridedRows<int16_t>&, const int16_t*, size_t, float, float,
                             float*) {};
       }},
      {"real_dots",
       [](F& f) {
         f.real_dots = [](const cpu::StridedRows<float>&, const float*, size_t, float, float*) {};
       }},
      {"combine_scores", [](F& f) { f.combine_scores = nothing; }},
      {"softmax", [](F& f) { f.softmax = nothing; }},
      {"weighted_codes", [](F& f) { f.weighted_codes = nothing; }},
      {"weighted_reals", [](F& f) { f.weighted_reals = nothing; }},
      {"largest", [](F& f) { f.largest = [](const float*, size_t) { return 0.5f; }; }},
      {"sum_exponentials", [](F& f) { f.sum_exponentials = nothing; }},
      {"exponentiate", [](F& f) { f.exponentiate = [](float*, size_t, float) { return 0.5f; }; }},
      {"layer_norm", [](F& f) { f.layer_norm = nothing; }},
      {"quantise", [](F& f) { f.quantise = nothing; }},
      {"largest_magnitude",
       [](F& f) { f.largest_magnitude = [](const float*, size_t) { return 0.0f; }; }},
      {"fixed_point", [](F& f) { f.fixed_point = nothing; }},
      {"dequantise", [](F& f) { f.dequantise = nothing; }},
      {"add", [](F& f) { f.add = nothing; }},
      {"add_codes", [](F& f) { f.add_codes = nothing; }},
      {"scale", [](F& f) { f.scale = nothing; }},
      {"lstm_gates", [](F& f) { f.lstm_gates = nothing; }},
      {"gru_gates", [](F& f) { f.gru_gates = nothing; }},
      {"rnn_gates", [](F& f) { f.rnn_gates = nothing; }},
      {"qrnn_gates", [](F& f) { f.qrnn_gates = nothing; }},
  };
  const Expected expected;
  for (const Omission& omission : omissions) {
    cpu::VectorFunctions broken = *functions;
    omission.omit(broken);
    std::string first;
    EXPECT_EQ(CountDifferences(&broken, expected, 5, &first), 5u) << omission.name;
  }
}

#endif  // KINGLET_HAVE_CPU_BACKEND

}  // namespace
}  // namespace kinglet::conformance_test
