// Times float32 products of one matrix with the vectors of many lanes: the product of the backend
// `cpu` and oneDNN's, in turns, at the shapes of the models that docs/PERFORMANCE.md names. Both on
// one thread, whose time on a processor counts. KINGLET_CPU=avx2 and ONEDNN_MAX_CPU_ISA=AVX2 hold
// both to AVX2.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/product.h"
#include "kernels/onednn/block_product.h"
#include "kernels/onednn/products.h"
#include "kinglet/status.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

constexpr size_t kMostVectors = cpu::ManyProduct::kMost;

// The matrices of one step, `times` of each.
struct Matrix {
  const char* model;
  const char* name;
  uint64_t rows, cols;
  double times;
};
constexpr Matrix kMatrices[] = {{"MicroNet", "qkv", 576, 256, 8},
                                {"MicroNet", "out", 256, 256, 8},
                                {"MicroNet", "fc0", 768, 256, 8},
                                {"MicroNet", "fc3", 256, 768, 8},
                                {"MicroNet", "head", 3500, 256, 1},
                                {"MicroNet", "tail 1", 21500, 64, 1},
                                {"LSTM 2 x 1500", "gates", 6000, 1500, 4},
                                {"LSTM 2 x 1500", "softmax", 10000, 1500, 1},
                                {"encoder", "qkv", 1536, 512, 6},
                                {"encoder", "out", 512, 512, 6},
                                {"encoder", "fc0", 2048, 512, 6},
                                {"encoder", "fc3", 512, 2048, 6},
                                {"small", "", 32, 32, 1},
                                {"small", "", 64, 64, 1},
                                {"small", "", 128, 128, 1},
                                {"small", "", 60000, 4, 1}};

using Times = std::vector<double>;  // microseconds

double Median(Times times) {
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The calling thread's time on a processor, so that other work on the machine disturbs less.
double Now() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

template <class Run>
double MicrosecondsOf(const Run& run) {
  constexpr double kEnough = 2000;
  const double start = Now();
  for (int count = 1;; ++count) {
    run();
    const double taken = Now() - start;
    if (taken > kEnough) return taken / count;
  }
}

class Pair {
 public:
  Pair(const Matrix& matrix, size_t lanes, const cpu::VectorFunctions& vector)
      : vector_(&vector),
        panels_(std::make_shared<cpu::Panels>(cpu::Panels::OfReals(matrix.rows, matrix.cols))),
        x_(lanes * matrix.cols),
        y_(lanes * matrix.rows) {
    std::vector<float> row(matrix.cols);
    for (uint64_t r = 0; r < matrix.rows; ++r) {
      for (uint64_t c = 0; c < matrix.cols; ++c) {
        row[c] = static_cast<float>((r * 31 + c * 7) % 511) / 256 - 1;
      }
      panels_->WriteReals(r, row.data());
    }
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i * 13 % 511) / 256 - 1;
    for (size_t lane = 0; lane < lanes; ++lane) {
      vectors_.push_back({x_.data() + lane * matrix.cols, y_.data() + lane * matrix.rows});
    }
    many_ = products_.Of(panels_);
    if (many_ == nullptr) return;
    products_.LayOut();
    memory_ = std::make_unique<WorkMemory>(1, many_->WorkBytes());
  }
  bool has_library() const { return many_ != nullptr; }
  void RunOurs() const {
    for (size_t first = 0; first < vectors_.size(); first += cpu::ProductBatch::kMost) {
      const size_t count = std::min(cpu::ProductBatch::kMost, vectors_.size() - first);
      vector_->real_product(panels_->real_panels(), vectors_.data() + first, count, {});
    }
  }
  void RunLibrary() const {
    many_->Multiply({0, panels_->panels()}, vectors_, cpu::Finish(), *memory_);
  }

 private:
  const cpu::VectorFunctions* vector_;
  std::shared_ptr<cpu::Panels> panels_;
  cpu::AlignedVector<float> x_, y_;
  std::vector<cpu::RealVector> vectors_;
  onednn::Products products_;
  std::shared_ptr<const cpu::ManyProduct> many_;
  std::unique_ptr<WorkMemory> memory_;
};

Status Measure(size_t lanes, int rounds) {
  KINGLET_ASSIGN_OR_RETURN(const cpu::Target target, cpu::ChosenTarget());
  const cpu::VectorFunctions* const vector = cpu::FindVectorFunctions(target);
  if (vector == nullptr) return Status(KINGLET_UNSUPPORTED, "many_products: no vector functions");
  const auto block = onednn::BlockProduct::Of(cpu::kPanelRows);
  std::printf("%s; %s; %zu lanes\n", std::string(cpu::TargetName(target)).c_str(),
              block != nullptr ? block->Describe().c_str() : "no product", lanes);
  std::printf("%-14s %-8s %12s %10s %10s %7s %7s\n", "model", "matrix", "shape", "cpu us",
              "onednn us", "times", "GFLOPS");
  double ours_of_model = 0, library_of_model = 0;
  for (size_t i = 0; i < std::size(kMatrices); ++i) {
    const Matrix& matrix = kMatrices[i];
    const Pair pair(matrix, lanes, *vector);
    Times ours, library;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(MicrosecondsOf([&] { pair.RunOurs(); }));
      if (pair.has_library()) library.push_back(MicrosecondsOf([&] { pair.RunLibrary(); }));
    }
    const double our_time = Median(ours);
    const double time = library.empty() ? our_time : Median(library);
    const double operations = 2.0 * static_cast<double>(matrix.rows * matrix.cols * lanes);
    const std::string shape = std::to_string(matrix.rows) + " x " + std::to_string(matrix.cols);
    std::printf("%-14s %-8s %12s %10.1f %10.1f %7.2f %7.1f\n", matrix.model, matrix.name,
                shape.c_str(), our_time, time, our_time / time, operations / time / 1000);
    ours_of_model += matrix.times * our_time;
    library_of_model += matrix.times * time;
    const bool is_last =
        i + 1 == std::size(kMatrices) || std::string(kMatrices[i + 1].model) != matrix.model;
    if (!is_last) continue;
    std::printf("%-14s %-8s %12s %10.1f %10.1f %7.2f\n", matrix.model, "all", "", ours_of_model,
                library_of_model, ours_of_model / library_of_model);
    ours_of_model = library_of_model = 0;
  }
  return Status();
}

int Main(int argc, char** argv) {
  size_t lanes = 64;
  int rounds = 5;
  ArgumentParser program("Time float32 products of the backends cpu and onednn with many vectors",
                         "many_products");
  program.Add("--lanes", lanes, "vectors").Between(size_t{1}, kMostVectors).ShowDefault();
  program.Add("--rounds", rounds, "number of rounds").Between(1, 1000).ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = Measure(lanes, rounds);
  if (!status.ok()) std::fprintf(stderr, "many_products: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
