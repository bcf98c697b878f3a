// Times products of one matrix with the vectors of several lanes (streams), on every instruction
// set of this machine, at the shapes of the best published MicroNet. Of its last tail also the sums
// of tiles of logits: after the product, and tile by tile.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/panels.h"
#include "kernels/cpu/product.h"
#include "kernels/numerics.h"

namespace kinglet::cpu {
namespace {

struct Matrix {
  const char* name;
  size_t rows, cols;
};
constexpr Matrix kMatrices[] = {{"qkv", 576, 256},
                                {"fc3", 256, 768},
                                {"head", 3500, 256},
                                {"tail1", 21500, 64},
                                {"tail2", 242735, 4}};
constexpr size_t kLanes[] = {1, 2, 4, 8, 16};

enum class Kind : uint8_t { kInteger, kDecoded, kReal, kSumsAfter, kSumsByTile };

// A matrix and the vectors of the lanes.
class Product {
 public:
  Product(const Matrix& matrix, Kind kind, size_t lanes, const VectorFunctions& vector)
      : vector_(&vector),
        kind_(kind),
        panels_(kind == Kind::kReal ? Panels::OfFloats(matrix.rows, matrix.cols)
                                    : Panels::OfIntegers(matrix.rows, matrix.cols, 9)),
        codes_(lanes * matrix.cols),
        floats_(lanes * matrix.cols),
        y_(lanes * matrix.rows),
        bias_(matrix.rows + kPanelRows, 0.5f) {
    std::vector<int16_t> row(matrix.cols), codes;
    std::vector<float> values(matrix.cols);
    for (size_t r = 0; r < matrix.rows; ++r) {
      for (size_t c = 0; c < matrix.cols; ++c) {
        row[c] = static_cast<int16_t>((r * 31 + c * 7) % 511) - 255;
        values[c] = static_cast<float>(row[c]) / 256;
      }
      codes.insert(codes.end(), row.begin(), row.end());
      if (!panels_.integer()) panels_.WriteFloats(r, values.data());
    }
    if (panels_.integer()) {
      const std::vector<float> scales(matrix.rows, 0.01f);
      panels_ = Panels::FromCodes(matrix.rows, matrix.cols, 9, codes, scales, vector);
    }
    for (size_t i = 0; i < codes_.size(); ++i) {
      codes_[i] = static_cast<int16_t>(i * 13 % 511) - 255;
      floats_[i] = static_cast<float>(codes_[i]) / 256;
    }
    for (size_t lane = 0; lane < lanes; ++lane) {
      float* y = y_.data() + lane * matrix.rows;
      code_vectors_.push_back({codes_.data() + lane * matrix.cols, 0.1f, y, nullptr});
      real_vectors_.push_back({floats_.data() + lane * matrix.cols, y});
    }
  }
  void Run() const {
    const size_t lanes = code_vectors_.size();
    switch (kind_) {
      case Kind::kInteger:
        return vector_->integer_product(panels_.code_panels(), code_vectors_.data(), lanes,
                                        ChunkPairs(9, 255), Finish{});
      case Kind::kDecoded:
        return vector_->decoded_product(panels_.code_panels(), real_vectors_.data(), lanes,
                                        Finish{});
      case Kind::kReal:
        return vector_->real_product(panels_.real_panels(), real_vectors_.data(), lanes, Finish{});
      case Kind::kSumsAfter:
        return MultiplyAndSum(SumTiles(panels_.rows()));
      case Kind::kSumsByTile:
        return MultiplyAndSum(1);
    }
  }

 private:
  // So many tiles of logits at a time.
  void MultiplyAndSum(size_t together) const {
    constexpr size_t kTilePanels = kSumTile / kPanelRows;
    std::vector<CodeVector> vectors = code_vectors_;
    std::vector<float> largest(vectors.size() * together), sums(together);
    for (size_t panel = 0; panel < panels_.panels(); panel += together * kTilePanels) {
      const size_t end = std::min(panel + together * kTilePanels, panels_.panels());
      const CodePanels part = panels_.code_panels({panel, end});
      for (size_t i = 0; i < vectors.size(); ++i) {
        vectors[i].y = code_vectors_[i].y + panel * kPanelRows;
        vectors[i].largest = together == 1 ? &largest[i] : nullptr;
      }
      vector_->integer_product(part, vectors.data(), vectors.size(), ChunkPairs(9, 255),
                               {bias_.data() + panel * kPanelRows, false});
      for (size_t i = 0; i < vectors.size(); ++i) {
        const float* const y = vectors[i].y;
        float* const of_vector = &largest[i * together];
        for (size_t row = 0; together > 1 && row < part.rows; row += kSumTile) {
          of_vector[row / kSumTile] =
              vector_->largest(y + row, std::min<size_t>(kSumTile, part.rows - row));
        }
        vector_->sum_logit_tiles(y, part.rows, false, of_vector, {}, sums.data());
      }
    }
  }

  const VectorFunctions* vector_;
  Kind kind_;
  Panels panels_;
  std::vector<int16_t> codes_;
  std::vector<float> floats_;
  AlignedVector<float> y_, bias_;
  std::vector<CodeVector> code_vectors_;
  std::vector<RealVector> real_vectors_;
};

void Register(const Matrix& matrix, Kind kind, const char* kind_name, size_t lanes, Target target) {
  const std::string name = std::string(matrix.name) + "." + kind_name +
                           "/lanes:" + std::to_string(lanes) + "@" +
                           std::string(TargetName(target));
  benchmark::RegisterBenchmark(name.c_str(), [&matrix, kind, lanes,
                                              target](benchmark::State& state) {
    const Product product(matrix, kind, lanes, *FindVectorFunctions(target));
    for (auto _ : state) {
      product.Run();
      benchmark::ClobberMemory();
    }
    const auto products = static_cast<double>(matrix.rows * matrix.cols * lanes);
    state.counters["products_per_ns"] =
        benchmark::Counter(1e-9 * products, benchmark::Counter::kIsIterationInvariantRate);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace kinglet::cpu

int main(int argc, char** argv) {
  using kinglet::cpu::Kind;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  for (const kinglet::cpu::Target target : kinglet::cpu::SupportedTargets()) {
    if (target == kinglet::cpu::Target::kScalar) continue;
    for (const size_t lanes : kinglet::cpu::kLanes) {
      const auto& last_tail = std::end(kinglet::cpu::kMatrices)[-1];
      kinglet::cpu::Register(last_tail, Kind::kSumsAfter, "sums_after", lanes, target);
      kinglet::cpu::Register(last_tail, Kind::kSumsByTile, "sums_by_tile", lanes, target);
    }
    for (const auto& matrix : kinglet::cpu::kMatrices) {
      for (const size_t lanes : kinglet::cpu::kLanes) {
        kinglet::cpu::Register(matrix, Kind::kInteger, "integer", lanes, target);
        kinglet::cpu::Register(matrix, Kind::kDecoded, "decoded", lanes, target);
        kinglet::cpu::Register(matrix, Kind::kReal, "real", lanes, target);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
