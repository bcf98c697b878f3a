// Compares a coded output layer, computed as partial products and sums, with the dense float32
// layer of the same shape on oneDNN: slim embeddings' output layer (Li et al. 2018) at the size of
// the One Billion Word benchmark. One thread each, interleaved runs, medians. Weights are random:
// the time does not depend on their values.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/onednn_product.h"
#include "converters/splitmix.h"
#include "format/bitpack.h"
#include "format/page_memory.h"
#include "kernels/backend.h"
#include "kernels/read_memory.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct Shape {
  uint32_t words = 793471, positions = 8;
  uint64_t width = 2048;
};

// One sub-vector for each word, divided among the pools as evenly as possible.
CodingScheme SchemeOf(const Shape& shape) {
  CodingScheme scheme;
  scheme.positions = shape.positions;
  for (uint32_t j = 0; j < shape.positions; ++j) {
    scheme.pools.push_back(shape.words / shape.positions +
                           (j < shape.words % shape.positions ? 1 : 0));
  }
  return scheme;
}

void FillWithFloats(std::span<float> values, uint64_t seed) {
  SplitMix64 random(seed);
  for (float& value : values) value = 0.02f * random.Signed();
}

// The layer as a plan of two nodes on the `cpu` backend. Each weight is in memory once.
class CodedLayer {
 public:
  // With `bits` 0 pools are float32 and x is floats. Otherwise pools are n-bit integers with a
  // scale for each row, and x is 9-bit codes or, if `fixed_point`, 15-bit fixed point.
  CodedLayer(const Shape& shape, int bits, bool fixed_point) {
    const CodingScheme scheme = SchemeOf(shape);
    const uint64_t length = shape.width / shape.positions, rows = scheme.PoolTotal();
    views_.push_back({"pools", {rows, length}, DenseView{}, std::nullopt});
    if (bits == 0) {
      std::span<std::byte> bytes = Keep(rows * length * sizeof(float));
      FillWithFloats({reinterpret_cast<float*>(bytes.data()), rows * length}, 1);
      views_[0].values = DenseView{FloatType::kF32, bytes};
    } else {
      const std::span<std::byte> codes = Keep(PackedBytes(rows * length, bits));
      SplitMix64 random(2);
      for (std::byte& byte : codes) byte = static_cast<std::byte>(random.Below(256));
      const std::span<std::byte> scales = Keep(rows * sizeof(float));
      FillWithFloats({reinterpret_cast<float*>(scales.data()), rows}, 3);
      // Scales are stored as 31-bit values (the bits of a positive float).
      views_[0].values =
          PackedView{bits, ScaleRule::kMultiplyPerRow, codes, ScalesView{rows, 31, 0, scales}};
    }
    SplitMix64 random(4);
    BitPacker packer(scheme.CodeBits(), uint64_t{shape.words} * shape.positions);
    for (uint32_t word = 0; word < shape.words; ++word) {
      for (uint32_t j = 0; j < shape.positions; ++j) packer.Append(random.Below(scheme.pools[j]));
    }
    const std::vector<std::byte> packed = packer.Finish();
    const std::span<std::byte> codes = Keep(packed.size());
    std::copy(packed.begin(), packed.end(), codes.begin());
    views_.push_back({"table", {shape.words, shape.width}, CodedView{scheme, codes, {}}, {}});

    plan_.weights = views_;
    const bool quantised = bits != 0 && !fixed_point;
    plan_.buffers = {{"x", quantised ? Element::kCode16 : Element::kReal, shape.width},
                     {"partial", Element::kReal, PartialCount(scheme)},
                     {"y", Element::kReal, shape.words}};
    if (quantised) plan_.buffers[0].quantiser = ActivationQuantiser{1.0f, 1.0f / 255};
    const TailInput input = fixed_point ? TailInput::kFixedPoint15 : TailInput::kAsIs;
    plan_.nodes = {{"partial", PartialProducts{1, BufferId{0}, BufferId{1}, input}},
                   {"sums", CodedSums{1, std::nullopt, BufferId{1}, BufferId{2}}}};
    layout_ = LayOut(plan_, sizeof(float)).value();
    scratch_ = PageMemory(layout_.scratch_bytes);
    SplitMix64 values(5);
    for (uint64_t i = 0; i < shape.width; ++i) {
      if (quantised) {
        reinterpret_cast<int16_t*>(scratch_.bytes().data())[i] =
            static_cast<int16_t>(static_cast<int>(values.Below(511)) - 255);
      } else {
        reinterpret_cast<float*>(scratch_.bytes().data())[i] = values.Signed();
      }
    }
    const auto release = [this](WeightId, MemoryRange bytes) { Release(bytes); };
    kernels_ = std::move(Backends()[0].bind(plan_, layout_, {release})).value();
  }

  void RunPartial() { Run(0); }
  void RunSums() { Run(1); }
  // Reads the kernels' weights and computes nothing.
  uint8_t Read() const {
    uint8_t sum = 0;
    for (const Kernel& kernel : kernels_) {
      for (const MemoryRange& range : kernel.weights) sum ^= ReadMemory(range);
    }
    return sum;
  }
  uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const Kernel& kernel : kernels_) {
      for (const MemoryRange& range : kernel.weights) bytes += range.size();
    }
    return bytes;
  }
  bool substituted() const { return kernels_[0].is_substitute || kernels_[1].is_substitute; }

 private:
  void Run(size_t node) {
    StreamFrame frame{scratch_.bytes().data(), nullptr, 0, 0};
    kernels_[node].Run({&frame, 1});
  }
  std::span<std::byte> Keep(uint64_t size) {
    stored_.emplace_back(size);
    return stored_.back().bytes();
  }
  void Release(MemoryRange bytes) {
    for (PageMemory& memory : stored_) {
      const MemoryRange all = std::as_const(memory).bytes();
      if (bytes.data() >= all.data() && bytes.data() < all.data() + all.size()) {
        memory.Release(bytes);
      }
    }
  }

  std::vector<PageMemory> stored_;
  std::vector<TensorView> views_;
  Plan plan_;
  BufferLayout layout_;
  PageMemory scratch_;
  std::vector<Kernel> kernels_;
};

struct Contender {
  std::string name;
  uint64_t bytes;  // of the weights that it reads
  std::function<void()> run;
  std::vector<double> milliseconds = {};

  double Median() const {
    std::vector<double> sorted = milliseconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void Measure(std::vector<Contender>& contenders, int rounds) {
  for (int round = -1; round < rounds; ++round) {  // the first round is not counted
    for (Contender& contender : contenders) {
      const auto begin = std::chrono::steady_clock::now();
      contender.run();
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - begin;
      if (round >= 0) contender.milliseconds.push_back(taken.count());
    }
  }
}

int Main(int argc, char** argv) {
  Shape shape;
  int rounds = 15, bits = 9;
  std::string layout = "any";
  ArgumentParser program("A coded output layer against the dense one on oneDNN", "coded_output");
  program.Add("--words", shape.words).Between(8u, 1u << 24).ShowDefault();
  program.Add("--width", shape.width).Between(uint64_t{8}, uint64_t{8192}).ShowDefault();
  program.Add("--positions", shape.positions).Between(1u, 64u).ShowDefault();
  program.Add("--bits", bits).Between(2, 16).ShowDefault();
  program
      .Add("--dense-layout", layout, "layout of oneDNN's weight: any (its choice), rows, columns")
      .OneOf({"any", "rows", "columns"})
      .ShowDefault();
  program.Add("--rounds", rounds).Between(1, 10000).ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  if (shape.width % shape.positions != 0 || shape.words < shape.positions) {
    std::fprintf(stderr, "coded_output: --positions: expected a divisor of --width\n");
    return 1;
  }

  const OnednnLayout dense_layout = layout == "rows"      ? OnednnLayout::kRows
                                    : layout == "columns" ? OnednnLayout::kColumns
                                                          : OnednnLayout::kAny;
  OnednnProduct dense(shape.words, shape.width, dense_layout);
  FillWithFloats(dense.weight(), 6);
  FillWithFloats(dense.x(), 7);
  CodedLayer floats(shape, 0, false), codes(shape, bits, false), fixed(shape, bits, true);
  const std::string n = std::to_string(bits) + "-bit";
  const auto run_layer = [](CodedLayer& layer) {
    layer.RunPartial();
    layer.RunSums();
  };
  volatile uint8_t sink = 0;
  std::vector<Contender> contenders = {
      {"dense float32", dense.weight().size_bytes(), [&] { dense.Run(); }},
      {"coded float32", floats.bytes(), [&] { run_layer(floats); }},
      {"  reading it", floats.bytes(), [&] { sink = floats.Read(); }},
      {"  its sums", 0, [&] { floats.RunSums(); }},
      {"coded " + n + ", codes", codes.bytes(), [&] { run_layer(codes); }},
      {"  reading it", codes.bytes(), [&] { sink = codes.Read(); }},
      {"coded " + n + ", fixed point", fixed.bytes(), [&] { run_layer(fixed); }},
  };
  std::printf("%u words, width %llu, %u positions; %s; one thread, %d rounds\n", shape.words,
              static_cast<unsigned long long>(shape.width), shape.positions,
              dense.Describe().c_str(), rounds);
  if (floats.substituted() || codes.substituted() || fixed.substituted()) {
    std::printf("reference kernels: this machine has no suitable vector instructions\n");
  }
  Measure(contenders, rounds);
  std::printf("%-24s %12s %12s %14s %8s\n", "", "median ms", "fastest ms", "weight bytes", "times");
  for (const Contender& contender : contenders) {
    std::printf("%-24s %12.2f %12.2f %14llu %8.2f\n", contender.name.c_str(), contender.Median(),
                *std::min_element(contender.milliseconds.begin(), contender.milliseconds.end()),
                static_cast<unsigned long long>(contender.bytes),
                contenders[0].Median() / contender.Median());
  }
  return 0;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
