#include "converters/planning/group_losses.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace kinglet {
namespace {

constexpr int kFloatBits = 32;
constexpr double kBitsPerByte = 8;
constexpr double kLargestLoss = 1e3;  // nats; of a model that gives a token probability 0

double Filled(double bytes) {
  constexpr double kPart = 64;  // where parts of a file begin (docs/FORMAT.md)
  return std::ceil(bytes / kPart) * kPart;
}

double StoredBytes(double entries, double nonzeros, int bits) {
  return std::min(Filled(std::ceil(entries * bits / kBitsPerByte)),
                  Filled(std::ceil(entries / kBitsPerByte)) +
                      Filled(std::ceil(nonzeros * bits / kBitsPerByte)));
}

NoisyLoss NoisyOf(const MeasuredChange& change, double baseline) {
  const double loss = std::isfinite(change.found.nll) ? change.found.nll - baseline : kLargestLoss;
  return {loss, change.found.standard_error,
          change.found.relative_error * change.found.relative_error};
}

// The changes of one kind, and their steadied losses.
template <class Kind>
struct OfKind {
  std::vector<const MeasuredChange*> changes;
  std::vector<double> losses;
};
template <class Kind>
OfKind<Kind> Steadied(const SensitivityRecord& record, size_t group) {
  OfKind<Kind> kind;
  std::vector<NoisyLoss> points;
  for (const MeasuredChange& change : record.changes) {
    if (change.group != group || !std::holds_alternative<Kind>(change.change)) continue;
    kind.changes.push_back(&change);
    points.push_back(NoisyOf(change, record.nll));
  }
  kind.losses = SteadiedLosses(points);
  return kind;
}

LossCurve SparsityCurve(const OfKind<SparsityChange>& kind, double zeros) {
  std::vector<CurvePoint> points;
  for (size_t i = 0; i < kind.changes.size(); ++i) {
    points.push_back({std::get<SparsityChange>(kind.changes[i]->change).fraction, kind.losses[i]});
  }
  return {zeros, std::move(points)};
}

template <class Kind>
OfKind<Kind> AmongOthers(OfKind<Kind> kind) {
  for (size_t i = 0; i < kind.changes.size(); ++i) {
    const double error = kind.changes[i]->found.relative_error;
    kind.losses[i] = LossAmongOthers(kind.losses[i], error * error);
  }
  return kind;
}

}  // namespace

double LossAmongOthers(double alone, double squared_error) {
  // On the bundled model 2 bits (relative errors of 0.35 to 0.45) lose 3 times as much among other
  // changes as alone, half of the entries pruned (0.3) 2 times (docs/PLANNING.md).
  constexpr double kGrowth = 12;
  return alone > 0 ? alone * (1 + kGrowth * squared_error) : alone;
}

std::vector<double> SteadiedLosses(const std::vector<NoisyLoss>& points) {
  constexpr double kLeastError = 1e-6;  // nats: of rounding, and of texts of one text block
  constexpr double kFactorError = 0.5;  // of a loss that the squared error predicts
  constexpr int kRounds = 20;
  const auto variance = [](const NoisyLoss& point) {
    return point.standard_error * point.standard_error + kLeastError * kLeastError;
  };
  // Begins with the point of the largest error, which has the least noise for its size.
  double factor = 0, largest = 0;
  for (const NoisyLoss& point : points) {
    if (point.squared_error <= largest) continue;
    largest = point.squared_error;
    factor = std::max(0.0, point.loss / point.squared_error);
  }
  for (int round = 0; round < kRounds; ++round) {
    double products = 0, squares = 0;
    for (const NoisyLoss& point : points) {
      const double off = kFactorError * factor * point.squared_error;
      const double weight = 1 / (variance(point) + off * off);
      products += weight * point.squared_error * point.loss;
      squares += weight * point.squared_error * point.squared_error;
    }
    if (squares > 0) factor = std::max(0.0, products / squares);
  }
  std::vector<double> losses;
  for (const NoisyLoss& point : points) {
    const double expected = factor * point.squared_error;
    // A measurement far above the expected loss is a loss that grows faster, not noise.
    const double off = kFactorError * std::max(expected, point.loss);
    const double of_expected = off * off + kLeastError * kLeastError;
    losses.push_back((point.loss * of_expected + expected * variance(point)) /
                     (variance(point) + of_expected));
  }
  return losses;
}

GroupLosses::GroupLosses(const SensitivityRecord& record, size_t group)
    : group_(&record.groups[group]),
      baseline_(record.nll),
      zeros_(1 - static_cast<double>(group_->nonzeros) / static_cast<double>(group_->entries)),
      sparsities_(SparsityCurve(Steadied<SparsityChange>(record, group), zeros_)),
      among_others_(SparsityCurve(AmongOthers(Steadied<SparsityChange>(record, group)), zeros_)) {
  const auto entries = static_cast<double>(group_->entries);
  const OfKind<BitsChange> quantised = AmongOthers(Steadied<BitsChange>(record, group));
  // The more bits, the smaller the loss.
  std::vector<size_t> order;
  for (size_t i = 0; i < quantised.changes.size(); ++i) order.push_back(i);
  const auto bits_of = [&](size_t i) {
    return std::get<BitsChange>(quantised.changes[i]->change).bits;
  };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return bits_of(a) > bits_of(b); });
  std::vector<double> losses;
  for (const size_t i : order) losses.push_back(quantised.losses[i]);
  NeverFalling(losses);
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const Measurement& found = quantised.changes[order[rank]]->found;
    const int bits = bits_of(order[rank]);
    const auto nonzeros = static_cast<double>(found.nonzeros);
    at_bits_[bits] = {std::max(0.0, losses[rank]), 1 - nonzeros / entries,
                      static_cast<double>(found.bytes) - StoredBytes(entries, nonzeros, bits)};
  }
  for (const auto& [bits, at] : at_bits_) bits_.push_back(bits);
  for (const MeasuredChange& change : record.changes) {
    if (change.group != group) continue;
    if (std::holds_alternative<CodesChange>(change.change)) codes_.push_back(change);
    if (std::holds_alternative<RankChange>(change.change)) ranks_.push_back(change);
    const auto* pruned = std::get_if<SparsityChange>(&change.change);
    if (pruned == nullptr || pruned->fraction <= zeros_) continue;
    if (!change.found.operations.micronet || !record.operations.micronet) continue;
    micronet_slope_ = (*change.found.operations.micronet - *record.operations.micronet) /
                      (pruned->fraction - zeros_);
  }
}

double GroupLosses::ZerosAt(std::optional<int> bits) const {
  return bits ? at_bits_.at(*bits).zeros : zeros_;
}

double GroupLosses::LossOf(std::optional<double> sparsity, std::optional<int> bits) const {
  double loss = bits ? at_bits_.at(*bits).loss : 0;
  if (sparsity) {
    loss += std::max(0.0, among_others_.LossAt(*sparsity) - among_others_.LossAt(ZerosAt(bits)));
  }
  return loss;
}

double GroupLosses::LossOfCodes(const MeasuredChange& change) const {
  const NoisyLoss alone = NoisyOf(change, baseline_);
  return std::max(0.0, LossAmongOthers(alone.loss, alone.squared_error));
}

double GroupLosses::LossOfRank(const MeasuredChange& change, std::optional<int> bits) const {
  return LossOfCodes(change) + (bits ? at_bits_.at(*bits).loss : 0);
}

double GroupLosses::BytesOfRank(const MeasuredChange& change, std::optional<int> bits) const {
  if (!bits) return static_cast<double>(change.found.bytes);
  return static_cast<double>(change.found.nonzeros) * *bits / kBitsPerByte +
         at_bits_.at(*bits).scale_bytes;
}

double GroupLosses::BytesOfCodes(const MeasuredChange& change, std::optional<int> bits) const {
  const auto bytes = static_cast<double>(change.found.bytes);
  if (!bits) return bytes;
  constexpr double kScaleBytes = 3;  // about, packed; one for each sub-vector
  const auto& codes = std::get<CodesChange>(change.change);
  const auto entries = static_cast<double>(change.found.nonzeros);
  return bytes - entries * (kFloatBits - *bits) / kBitsPerByte +
         kScaleBytes * static_cast<double>(codes.sub_vectors);
}

double GroupLosses::BytesOf(std::optional<double> sparsity, std::optional<int> bits) const {
  const auto entries = static_cast<double>(group_->entries);
  const double zeros = std::max(ZerosAt(bits), sparsity.value_or(0));
  const double stored =
      StoredBytes(entries, entries - std::floor(zeros * entries + 1e-9), bits.value_or(kFloatBits));
  return stored + (bits ? at_bits_.at(*bits).scale_bytes : 0);
}

}  // namespace kinglet
