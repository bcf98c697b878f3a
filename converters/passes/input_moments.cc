#include "converters/passes/input_moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

#include "converters/passes/ordered_products.h"
#include "converters/thread_shares.h"
#include "format/model_file.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// The sums of one matrix: the lower triangle is summed, and mirrored in the end. Inputs are added
// many at a time, in their order.
class Sums {
 public:
  Sums(Slot input, SecondMoments& moments, uint64_t& vectors)
      : input_(input), moments_(&moments), vectors_(&vectors) {}

  void Add(const StreamFrame& frame) {
    const float* const x = input_.At<float>(frame);
    waiting_.insert(waiting_.end(), x, x + input_.count);
    if (waiting_.size() == kTogether * input_.count) Flush();
  }
  void Flush() {
    const size_t width = input_.count, count = waiting_.size() / width;
    const MatrixPart<const double> x = {waiting_.data(), width};
    const MatrixPart<double> sums = {moments_->mean.data(), width};
    for (size_t row = 0; row < width; row += kRows) {
      const size_t end = std::min(row + kRows, width);
      AddProducts(ProductSign::kPlus, end - row, end, count, x.From(0, row), x, sums.From(row, 0),
                  MachineThreads());
    }
    *vectors_ += count;
    waiting_.clear();
  }

 private:
  static constexpr size_t kTogether = 64, kRows = 256;

  Slot input_;
  SecondMoments* moments_;
  uint64_t* vectors_;
  std::vector<double> waiting_;
};

Status Finish(uint64_t vectors, SecondMoments& moments) {
  const uint64_t width = moments.width;
  for (uint64_t row = 0; row < width; ++row) {
    for (uint64_t column = 0; column <= row; ++column) {
      double& value = moments.mean[row * width + column];
      value /= static_cast<double>(vectors);
      if (!std::isfinite(value)) {
        return Status::Refusal(KINGLET_NOT_FINITE, "calibration", "input of a product",
                               "finite activations", "infinity or NaN");
      }
      moments.mean[column * width + row] = value;
    }
  }
  return {};
}

// Reads the texts of a masked model, and asks for all that the model computes: the distribution at
// each mask, the pooled vector, the scores of the text or of each token.
Status RunOnTexts(const CalibrationInput& input, Session& session) {
  const Model& model = session.model();
  const Result<MaskTokens> words = MaskTokensOf(model, "calibration");
  const bool spans = model.plan().reading->scores_spans;
  std::vector<float> distribution(model.vocabulary_size());
  std::vector<double> pooled(session.pooled_width()), scores(session.scores());
  return ReadMasked(input.texts, session, [&](const MaskedText& text) -> Status {
    if (!pooled.empty()) KINGLET_RETURN_IF_ERROR(session.Pooled(pooled));
    if (!scores.empty() && !spans) KINGLET_RETURN_IF_ERROR(session.Scores(scores));
    for (size_t i = 0; i < text.ids.size(); ++i) {
      if (spans) KINGLET_RETURN_IF_ERROR(session.Scores(scores, i));
      if (!words.ok() || text.ids[i] != words->mask) continue;
      KINGLET_RETURN_IF_ERROR(session.LookAt(i));
      KINGLET_RETURN_IF_ERROR(session.LogProbabilities(distribution));
    }
    return {};
  });
}

// Feeds a text or pairs, and asks for the distribution after each token, which runs the products of
// the softmax.
Status RunOn(const CalibrationInput& input, Session& session) {
  if (session.model().plan().reading) return RunOnTexts(input, session);
  const ModelDescription& description = session.model().file().description();
  std::vector<float> distribution(description.vocabulary_size);
  if (input.pairs.empty()) {
    for (const uint32_t token : ScoredStream(description, input.tokens)) {
      KINGLET_RETURN_IF_ERROR(session.StepToken(token));
      KINGLET_RETURN_IF_ERROR(session.LogProbabilities(distribution));
    }
  }
  for (size_t i = 0; i < input.pairs.size(); ++i) {
    const Status status = FeedPair(
        input.pairs[i], session, [&](uint32_t) { return session.LogProbabilities(distribution); });
    if (!status.ok()) return InSentence(i, status);
  }
  return {};
}

}  // namespace

Result<InputMoments> MeasureInputs(const std::string& path, const CalibrationInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const SharedModel model, OpenInFloats(path));
  const Plan& plan = model->plan();
  InputMoments moments;
  std::map<TensorId, uint64_t> vectors;
  std::unordered_map<const Node*, Sums> products;
  for (const Node& node : plan.nodes) {
    const auto* product = std::get_if<MatVec>(&node.op);
    if (product == nullptr || plan.buffer(product->x).element != Element::kReal) continue;
    const Slot slot = model->layout().slots[static_cast<size_t>(product->x)];
    SecondMoments& found = moments[product->weight];
    found.width = slot.count;
    found.mean.resize(slot.count * slot.count);
    products.try_emplace(&node, slot, found, vectors[product->weight]);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  session->set_observer([&products](const Node& node, std::span<const StreamFrame> frames) {
    const auto found = products.find(&node);
    if (found == products.end()) return;
    for (const StreamFrame& frame : frames) found->second.Add(frame);
  });
  KINGLET_RETURN_IF_ERROR(RunOn(input, *session));
  for (auto& [node, sums] : products) sums.Flush();
  std::erase_if(moments, [&](const auto& entry) { return vectors[entry.first] == 0; });
  for (auto& [id, found] : moments) KINGLET_RETURN_IF_ERROR(Finish(vectors[id], found));
  return moments;
}

}  // namespace kinglet
