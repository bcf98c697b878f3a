// Every backend against the specification, one operation at a time. `cpu` equals `ref` bit for bit
// on every instruction set of this machine; `ref64` is `ref` with less rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ref/ref.h"
#include "tests/support/op_cases.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/direct_cases.h"
#include "tests/kernels/cpu/vector_members.h"
#endif

namespace kinglet::conformance_test {
namespace {

using Kernels = Result<std::vector<Kernel>>;

OpRun RunOn(const OpCase& op_case, const BufferLayout& layout, size_t real_bytes,
            const Kernels& kernels) {
  OpRun run(op_case, real_bytes);
  EXPECT_EQ(run.layout().scratch_bytes, layout.scratch_bytes);
  run.Run(kernels.value().front());
  return run;
}

// A case, its layout, and its run on ref.
struct Expected {
  explicit Expected(OpCase of)
      : op_case(std::move(of)),
        layout(LayOut(op_case.plan, sizeof(float)).value()),
        run(RunOn(op_case, layout, sizeof(float), ref::BindFloat(op_case.plan, layout))) {}
  Expected(const Expected&) = delete;  // `run` points to `op_case`
  const OpCase op_case;
  const BufferLayout layout;
  const OpRun run;
};

// Every case, run on ref once for all tests.
const std::deque<Expected>& AllExpected() {
  static const std::deque<Expected> all = [] {
    std::deque<Expected> made;
    for (OpCase& op_case : EdgeOpCases()) made.emplace_back(std::move(op_case));
#ifndef KINGLET_SANITIZED  // these run the loops of the edge cases, only more often
    for (OpCase& op_case : RealisticOpCases()) made.emplace_back(std::move(op_case));
#endif
    return made;
  }();
  return all;
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
  for (const auto& [op_case, layout, expected] : AllExpected()) {
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

// A kernel that runs the chunks of each phase one by one, in an order shuffled with the seed, on
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
  for (const auto& [op_case, layout, expected] : AllExpected()) {
    for (const Backend& backend : Backends()) {
      if (backend.real_bytes != sizeof(float)) continue;
      const Kernels kernels = backend.bind(op_case.plan, layout, {});
      ASSERT_TRUE(kernels.ok()) << op_case.name << " " << kernels.status().message();
      const auto has_chunks = [](const Phase& phase) { return phase.chunks > 1; };
      const auto& phases = kernels->front().phases;
      if (std::none_of(phases.begin(), phases.end(), has_chunks)) continue;
      ++divided;
      OpRun run(op_case, sizeof(float));
      run.Run(Scattered(kernels->front(), divided));
      EXPECT_EQ(run.Difference(expected), "") << op_case.name << " on " << backend.name;
    }
  }
#ifdef KINGLET_HAVE_CPU_BACKEND
  EXPECT_GT(divided, 100u);
#endif
}

// The case with weights whose stored bytes, which are in `storage`, are all zero.
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
      // A divisor decides whether a kernel keeps integers, so it stays.
      if (packed->rule != ScaleRule::kDividePerTensor) blank(packed->scales.bytes);
    }
    // An embedding's codes decide which rows are read, so they stay.
    auto* coded = std::get_if<CodedView>(&view.values);
    const Op& op = op_case.plan.nodes[0].op;
    if (coded && !std::holds_alternative<EmbedRow>(op)) blank(coded->codes);
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

// A kernel bound to weights that are all zeros gets the bytes that the real kernel reports as read.
// The kernel then computes what ref computes, so the real kernel reads no other weights.
TEST(Conformance, KernelsReportAllTheWeightMemoryThatTheyRead) {
  size_t reading = 0;
  for (const auto& [op_case, layout, expected] : AllExpected()) {
    std::vector<TensorView> views;
    std::deque<std::vector<std::byte>> storage;
    const OpCase blanked = WithoutWeights(op_case, views, storage);
    for (const Backend& backend : Backends()) {
      if (backend.real_bytes != sizeof(float)) continue;
      const Kernels kernels = backend.bind(op_case.plan, layout, {});
      const Kernels blanks = backend.bind(blanked.plan, layout, {});
      ASSERT_TRUE(kernels.ok() && blanks.ok()) << op_case.name;
      const uint32_t word = op_case.spelt == 0 ? op_case.token : op_case.spelt;
      const auto from = WeightsRead(kernels->front(), word, op_case.position);
      const auto to = WeightsRead(blanks->front(), word, op_case.position);
      ASSERT_EQ(from.size(), to.size()) << op_case.name << " on " << backend.name;
      reading += !from.empty();
      for (size_t i = 0; i < from.size(); ++i) {
        ASSERT_EQ(from[i].size(), to[i].size()) << op_case.name << " on " << backend.name;
        // The kernel's memory is not constant; only the view of it is.
        std::copy(from[i].begin(), from[i].end(), const_cast<std::byte*>(to[i].data()));
      }
      const OpRun run = RunOn(op_case, layout, sizeof(float), blanks);
      EXPECT_EQ(run.Difference(expected), "") << op_case.name << " on " << backend.name;
    }
  }
  EXPECT_GT(reading, 100u);
}

// The operands that an operation names.
struct Named : OperandVisitor {
  std::set<BufferId> read, written;
  std::set<WeightId> weights;
  void Reads(BufferId id) { read.insert(id); }
  void Writes(BufferId id) { written.insert(id); }
  void Weight(WeightId id) { weights.insert(id); }
};

bool Same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

TEST(Conformance, OperationsNameAllTheirOperands) {
  for (const auto& [op_case, layout, run] : AllExpected()) {
    Named named;
    VisitOperands(op_case.plan, op_case.plan.nodes[0].op, named);
    EXPECT_EQ(named.weights.size(), op_case.plan.weights.size()) << op_case.name;
    OpRun before(op_case, sizeof(float));
    before.Run(Kernel{});
    for (size_t i = 0; i < op_case.plan.buffers.size(); ++i) {
      const auto id = static_cast<BufferId>(i);
      const std::string& name = op_case.plan.buffers[i].name;
      EXPECT_TRUE(named.read.contains(id) || named.written.contains(id))
          << op_case.name << " " << name;
      if (named.written.contains(id)) continue;
      EXPECT_TRUE(Same(run.Values(id), before.Values(id))) << op_case.name << " " << name;
    }
  }
}

TEST(Conformance, Ref64IsRefWithLessRounding) {
  for (const auto& [op_case, float_layout, expected] : AllExpected()) {
    if (op_case.ref64_tolerance < 0) continue;
    const BufferLayout layout = LayOut(op_case.plan, sizeof(double)).value();
    const Kernels kernels = ref::BindDouble(op_case.plan, layout);
    ASSERT_TRUE(kernels.ok()) << op_case.name;
    const OpRun run = RunOn(op_case, layout, sizeof(double), kernels);
    EXPECT_LE(WorstError(op_case, expected, run), op_case.ref64_tolerance) << op_case.name;
  }
}

#ifdef KINGLET_HAVE_CPU_BACKEND

// The first difference from ref of a case run with these functions; empty if all results are equal.
std::string DifferenceOf(const cpu::VectorFunctions* functions, const Expected& expected) {
  const auto& [op_case, layout, ref_run] = expected;
  return RunOn(op_case, layout, sizeof(float), cpu::BindWith(functions, op_case.plan, layout))
      .Difference(ref_run);
}

// How many cases differ from ref when run with these functions, up to `enough`. `first` gets the
// first difference.
size_t CountDifferences(const cpu::VectorFunctions* functions, size_t enough, std::string* first) {
  size_t differing = 0;
  for (const Expected& expected : AllExpected()) {
    if (differing == enough) break;
    const std::string difference = DifferenceOf(functions, expected);
    if (!difference.empty() && differing++ == 0) {
      *first = expected.op_case.name + ": " + difference;
    }
  }
  return differing;
}

TEST(Conformance, EveryInstructionSetEqualsRef) {
  for (const cpu::Target target : cpu::SupportedTargets()) {
    std::string first;
    EXPECT_EQ(CountDifferences(cpu::FindVectorFunctions(target), 1, &first), 0u)
        << cpu::TargetName(target) << " " << first;
  }
}

// Queries call these functions (kernels/cluster_tokens.h), or bench does.
TEST(Conformance, FunctionsOutsideOperationsEqualRef) {
  for (const cpu::Target target : cpu::SupportedTargets()) {
    const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(target);
    if (functions == nullptr) continue;
    for (const cpu::DirectCase& direct : cpu::kDirectCases) {
      EXPECT_EQ(direct.found(*functions), direct.expected())
          << cpu::TargetName(target) << " " << direct.function;
    }
  }
}

// Tests the comparison itself, which must notice a kernel that is off by one unit in the last place
// of one element, or that writes beyond its buffer.
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

void WritesBeyond(const float* x, size_t n, float max_abs, float node, int16_t* codes) {
  unbroken->quantise(x, n, max_abs, node, codes);
  if (n % 32 != 0) codes[n] = 1;
}

TEST(Conformance, NoticesABrokenKernel) {
  unbroken = cpu::FindVectorFunctions(cpu::SupportedTargets().front());
  if (unbroken == nullptr) GTEST_SKIP() << "this machine has no vector target to break";
  std::string first;
  ASSERT_EQ(CountDifferences(unbroken, 1, &first), 0u) << first;

  cpu::VectorFunctions broken = *unbroken;
  broken.integer_product = OffByOneUnit;
  EXPECT_EQ(CountDifferences(&broken, 100, &first), 100u);
  EXPECT_EQ(first.substr(0, 7), "MatVec/");

  broken = *unbroken;
  broken.quantise = WritesBeyond;
  EXPECT_EQ(CountDifferences(&broken, 10, &first), 10u);
  EXPECT_EQ(first.substr(0, 9), "Quantise/");
}

// Replaces a member of the table: Call does what the real function does and records that it was
// called.
template <auto kMember>
struct Spy;
template <class R, class... A, R (*cpu::VectorFunctions::*kMember)(A...)>
struct Spy<kMember> {
  static inline const cpu::VectorFunctions* real = nullptr;
  static inline bool called = false;
  static R Call(A... arguments) {
    called = true;
    return (real->*kMember)(arguments...);
  }
  // Does nothing, and returns a wrong number.
  static R Omit(A...) {
    if constexpr (!std::is_void_v<R>) return static_cast<R>(0.5);
  }
};

// For each vector function: if it does nothing, some case must differ from ref. So the equality of
// every function with ref is tested.
TEST(Conformance, ReachesEveryVectorFunction) {
  const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(cpu::SupportedTargets().front());
  if (functions == nullptr) GTEST_SKIP() << "this machine has no vector target";
  cpu::VectorFunctions spied = *functions;
  cpu::VectorMembers::ForEach([&]<auto kMember>() {
    Spy<kMember>::real = functions;
    spied.*kMember = Spy<kMember>::Call;
  });
  // The cases that call each function.
  std::map<std::string_view, std::vector<const Expected*>> callers;
  for (const Expected& expected : AllExpected()) {
    EXPECT_EQ(DifferenceOf(&spied, expected), "") << expected.op_case.name;
    cpu::VectorMembers::ForEach([&]<auto kMember>() {
      if (Spy<kMember>::called) callers[cpu::MemberName<kMember>()].push_back(&expected);
      Spy<kMember>::called = false;
    });
  }

  size_t tested = 0;
  cpu::VectorMembers::ForEach([&]<auto kMember>() {
    const std::string_view name = cpu::MemberName<kMember>();
    cpu::VectorFunctions broken = *functions;
    broken.*kMember = Spy<kMember>::Omit;
    const auto direct =
        std::find_if(std::begin(cpu::kDirectCases), std::end(cpu::kDirectCases),
                     [&](const cpu::DirectCase& each) { return each.function == name; });
    if (direct != std::end(cpu::kDirectCases)) {
      EXPECT_NE(direct->found(broken), direct->expected()) << name;
      ++tested;
      return;
    }
    constexpr size_t kEnough = 5;
    size_t differing = 0;
    for (const Expected* expected : callers[name]) {
      if (differing == kEnough) break;
      differing += !DifferenceOf(&broken, *expected).empty();
    }
    EXPECT_EQ(differing, kEnough) << name;
    ++tested;
  });
  EXPECT_EQ(tested, cpu::VectorMembers::kCount);
}

#endif  // KINGLET_HAVE_CPU_BACKEND

}  // namespace
}  // namespace kinglet::conformance_test
