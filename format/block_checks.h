// What the checks of all kinds of blocks are made of: refusals that name the block, and the rules
// that several kinds share.
#ifndef KINGLET_FORMAT_BLOCK_CHECKS_H_
#define KINGLET_FORMAT_BLOCK_CHECKS_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "format/blocks.h"
#include "format/encoding.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "kinglet/status.h"

namespace kinglet {

class BlockChecks {
 public:
  // REQUIRES: source and tensors outlive it.
  BlockChecks(const std::string& source, std::span<const TensorView> tensors)
      : tensors_(tensors), source_(source) {}

  // Refusals of parts name this block from now on.
  void EnterBlock(const std::string& name) { where_ = "block " + name; }
  std::span<const TensorView> tensors() const { return tensors_; }

  Status Invalid(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_MODEL, source_, where, expected, found);
  }
  // Inside the block that is being validated.
  Status InvalidPart(const std::string& part, const std::string& expected,
                     const std::string& found) const {
    return Invalid(where_ + ", " + part, expected, found);
  }

  // The same where `fault` has the part, what was expected and what was found.
  Status InvalidPart(const std::string& fault) const {
    return Status(KINGLET_INVALID_MODEL, source_ + ": " + where_ + ", " + fault);
  }

  Status ValidateExtent(const std::string& part, uint64_t value) const {
    if (value >= 1 && value <= kMaxExtent) return {};
    return InvalidPart(part, "1 to " + std::to_string(kMaxExtent), std::to_string(value));
  }

  Status ValidatePositive(const char* part, double value) const {
    if (std::isfinite(value) && value > 0) return {};
    return InvalidPart(part, "a finite number above 0", NumberText(value));
  }

  Status ValidateTensorShape(const std::string& part, TensorId id, const Shape& expected) const {
    if (id >= tensors_.size()) {
      return InvalidPart(part, "a tensor id below " + std::to_string(tensors_.size()),
                         std::to_string(id));
    }
    const TensorView& tensor = tensors_[id];
    if (tensor.shape == expected) return {};
    return InvalidPart(part, "shape " + ShapeText(expected),
                       ShapeText(tensor.shape) + " of tensor " + tensor.name);
  }
  // The same for what kernels index themselves: rows of sub-vectors do not serve. REQUIRES: the id
  // is in range.
  Status ValidateNotCoded(const std::string& part, TensorId id) const {
    if (tensors_[id].coded() == nullptr) return {};
    return InvalidPart(part, "a tensor that is not coded", "coded tensor " + tensors_[id].name);
  }

  Status ValidateQuantiser(const std::string& part, const ActivationQuantiser& quantiser) const {
    const auto positive = [](float value) { return std::isfinite(value) && value > 0; };
    if (!positive(quantiser.max_abs) || !positive(quantiser.step)) {
      return InvalidPart(part, "a finite maximum and step above 0",
                         NumberText(quantiser.max_abs) + " and " + NumberText(quantiser.step));
    }
    const double levels = double{quantiser.max_abs} / double{quantiser.step};
    if (levels > kMaxQuantiserLevels) {
      return InvalidPart(part, "at most 2^20 steps up to the maximum", NumberText(levels));
    }
    return {};
  }

 protected:
  const std::span<const TensorView> tensors_;

 private:
  const std::string& source_;
  std::string where_;  // "block NAME"
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCK_CHECKS_H_
