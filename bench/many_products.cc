// Times float32 products of one matrix with the vectors of many lanes: the product of the backend
// `cpu` and oneDNN's, interleaved, at the shapes of models, or at small ones where one takes over
// from the other. Both on one thread, whose time on a processor counts. KINGLET_CPU=avx2 and
// ONEDNN_MAX_CPU_ISA=AVX2 hold both to AVX2.
#include <time.h>

#include <algorithm>
#include <compare>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/product.h"
#include "kernels/onednn/library.h"
#include "kernels/onednn/products.h"
#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

constexpr size_t kMostVectors = cpu::ManyProduct::kMost;

struct Shape {
  uint64_t rows, cols;
  auto operator<=>(const Shape&) const = default;
};
// The matrices of one step with all queries, or of an encoder, each with its number of uses.
struct Group {
  std::string name;
  std::vector<std::pair<Shape, size_t>> shapes;
};

// Where one product takes over from the other.
Group SmallShapes() {
  Group group = {"small", {}};
  for (const uint64_t rows : {16, 64, 1024}) {
    for (const uint64_t cols : {4, 16, 32, 64, 128}) group.shapes.push_back({{rows, cols}, 1});
  }
  return group;
}

// In order of the first node that has the shape. Quantised matrices count as if they were float32.
Group GroupOf(const std::string& name, const Plan& plan, NodeRange range) {
  Group group = {name, {}};
  for (size_t i = range.begin; i < range.end; ++i) {
    const auto* const product = std::get_if<MatVec>(&plan.nodes[i].op);
    if (product == nullptr) continue;
    const auto& of_weight = plan.weights[product->weight].shape;
    const Shape shape = {Rows(of_weight), Cols(of_weight)};
    const auto same = [&](const auto& entry) { return entry.first == shape; };
    const auto found = std::find_if(group.shapes.begin(), group.shapes.end(), same);
    if (found != group.shapes.end()) {
      ++found->second;
    } else {
      group.shapes.push_back({shape, 1});
    }
  }
  return group;
}

Result<std::vector<Group>> GroupsOf(const std::vector<std::string>& models) {
  if (models.empty()) return std::vector<Group>{SmallShapes()};
  std::vector<Group> groups;
  for (const std::string& path : models) {
    KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(path, ModelOptions{}));
    const Plan& plan = model->plan();
    const size_t encoder = plan.encoder ? plan.encoder->sweeps.front().begin : plan.nodes.size();
    const std::string name = std::filesystem::path(path).stem().string();
    groups.push_back(GroupOf(name, plan, {0, encoder}));
    if (plan.encoder) {
      groups.push_back(GroupOf(name + ", encoder", plan, {encoder, plan.nodes.size()}));
    }
  }
  return groups;
}

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
  Pair(const Shape& shape, size_t lanes, const cpu::VectorFunctions& vector,
       const onednn::Library& library)
      : vector_(&vector),
        panels_(std::make_shared<cpu::Panels>(cpu::Panels::OfFloats(shape.rows, shape.cols))),
        x_(lanes * shape.cols),
        y_(lanes * shape.rows),
        products_(library) {
    std::vector<float> row(shape.cols);
    for (uint64_t r = 0; r < shape.rows; ++r) {
      for (uint64_t c = 0; c < shape.cols; ++c) {
        row[c] = static_cast<float>((r * 31 + c * 7) % 511) / 256 - 1;
      }
      panels_->WriteFloats(r, row.data());
    }
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i * 13 % 511) / 256 - 1;
    std::fill(y_.begin(), y_.end(), 0.0f);
    for (size_t lane = 0; lane < lanes; ++lane) {
      vectors_.push_back({x_.data() + lane * shape.cols, y_.data() + lane * shape.rows});
    }
    many_ = products_.AnyOf(panels_);
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

struct Options {
  std::vector<std::string> models;
  size_t lanes = 64;
  int rounds = 5;
};

Status Measure(const Options& options) {
  KINGLET_ASSIGN_OR_RETURN(const cpu::Target target, cpu::ChosenTarget());
  const cpu::VectorFunctions* const vector = cpu::FindVectorFunctions(target);
  if (vector == nullptr) return Status(KINGLET_UNSUPPORTED, "many_products: no vector functions");
  KINGLET_ASSIGN_OR_RETURN(const onednn::Library* const library, onednn::Library::Find());
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Group> groups, GroupsOf(options.models));
  std::printf("%s; %s; %zu lanes\n", std::string(cpu::TargetName(target)).c_str(),
              library->name().c_str(), options.lanes);
  for (const Group& group : groups) {
    std::printf("%s\n%14s %5s %10s %10s %6s %7s  %s\n", group.name.c_str(), "matrix", "count",
                "cpu us", "onednn us", "times", "GFLOPS", "taken");
    double all_of_cpu = 0, all_taken = 0;
    for (const auto& [shape, count] : group.shapes) {
      const Pair pair(shape, options.lanes, *vector, *library);
      Times ours, theirs;
      for (int round = 0; round < options.rounds; ++round) {
        ours.push_back(MicrosecondsOf([&] { pair.RunOurs(); }));
        if (pair.has_library()) theirs.push_back(MicrosecondsOf([&] { pair.RunLibrary(); }));
      }
      const double time = Median(ours);
      const double library_time = theirs.empty() ? time : Median(theirs);
      const bool taken = !theirs.empty() && onednn::IsFaster(shape.rows, shape.cols);
      const double operations = 2.0 * static_cast<double>(shape.rows * shape.cols * options.lanes);
      std::printf("%14s %5zu %10.1f %10.1f %6.2f %7.1f  %s\n",
                  (std::to_string(shape.rows) + " x " + std::to_string(shape.cols)).c_str(), count,
                  time, library_time, time / library_time, operations / library_time / 1000,
                  taken ? "oneDNN" : "ours");
      all_of_cpu += static_cast<double>(count) * time;
      all_taken += static_cast<double>(count) * (taken ? library_time : time);
    }
    std::printf("%14s %5s %10.1f %10.1f %6.2f\n", "all, as taken", "", all_of_cpu, all_taken,
                all_of_cpu / all_taken);
  }
  return Status();
}

int Main(int argc, char** argv) {
  Options options;
  ArgumentParser program("Time float32 products of the backends cpu and onednn with many vectors",
                         "many_products");
  program.Add("M.kgl", options.models, "models whose matrices are multiplied").Placeholder("");
  program.Add("--lanes", options.lanes, "vectors").Between(size_t{1}, kMostVectors).ShowDefault();
  program.Add("--rounds", options.rounds, "number of rounds").Between(1, 1000).ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = Measure(options);
  if (!status.ok()) std::fprintf(stderr, "many_products: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
