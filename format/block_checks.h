// Checks that the validators of all kinds of blocks share. A refusal names the block and its part.
#ifndef KINGLET_FORMAT_BLOCK_CHECKS_H_
#define KINGLET_FORMAT_BLOCK_CHECKS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "format/blocks.h"
#include "format/encoding.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "kinglet/status.h"

namespace kinglet {

// A tensor that a block may have, by its name in refusals.
struct BlockTensor {
  const char* name;
  std::optional<TensorId> id;
  Shape shape;  // the shape that the tensor must have
};

struct BlockQuantiser {
  const char* name;
  const ActivationQuantiser& quantiser;
};

class BlockChecks {
 public:
  // REQUIRES: origin and tensors outlive the checks.
  BlockChecks(const std::string& origin, std::span<const TensorView> tensors)
      : tensors_(tensors), origin_(origin) {}

  // From now on InvalidPart names this block.
  void EnterBlock(const std::string& name) { where_ = "block " + name + ", "; }

  // A refusal of the complete model.
  Status Invalid(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin_, where, expected, found);
  }
  // A refusal of a part of the block that was entered; before any, of the model.
  Status InvalidPart(const std::string& part, const std::string& expected,
                     const std::string& found) const {
    return Invalid(where_ + part, expected, found);
  }
  // `fault` is "PART: expected X, found Y".
  Status InvalidPart(const std::string& fault) const {
    return Status(KINGLET_INVALID_MODEL, origin_ + ": " + where_ + fault);
  }

  Status ValidateRange(const std::string& part, uint64_t value, uint64_t least,
                       uint64_t largest) const {
    if (value >= least && value <= largest) return {};
    const std::string from = least == 0 ? "at most " : std::to_string(least) + " to ";
    return InvalidPart(part, from + std::to_string(largest), std::to_string(value));
  }
  Status ValidateExtent(const std::string& part, uint64_t value) const {
    return ValidateRange(part, value, 1, kMaxExtent);
  }

  // Enumerations count from 0 to `last`. Readers check enumerators, but nothing has checked those
  // of a draft.
  template <class Enumeration>
  Status ValidateEnumerator(const std::string& part, Enumeration value, Enumeration last) const {
    if (value <= last) return {};
    return InvalidPart(part, "a number up to " + std::to_string(static_cast<unsigned>(last)),
                       std::to_string(static_cast<unsigned>(value)));
  }

  Status ValidatePositive(const std::string& part, double value) const {
    if (std::isfinite(value) && value > 0) return {};
    return InvalidPart(part, "a finite number above 0", NumberText(value));
  }

  // Checks that a part is present exactly if it is needed. `reason` states why.
  Status ValidatePresence(const std::string& part, bool present, bool needed,
                          const char* reason) const {
    if (present == needed) return {};
    return InvalidPart(part, std::string(needed ? "one, as " : "none, as ") + reason,
                       present ? "one" : "none");
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
  // Checks a matrix that is not coded; 0 rows or columns stand for any number.
  Status ValidateMatrix(const std::string& part, TensorId id, uint64_t rows, uint64_t cols) const {
    Shape expected = {rows, cols};
    if (id < tensors_.size() && tensors_[id].shape.size() == 2) {
      for (size_t i = 0; i < 2; ++i) {
        if (expected[i] == 0) expected[i] = tensors_[id].shape[i];
      }
    }
    KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part, id, expected));
    return ValidateNotCoded(part, id);
  }
  // REQUIRES: the id is in range.
  const Shape& ShapeOf(TensorId id) const { return tensors_[id].shape; }
  Status ValidateOptional(const std::string& part, const std::optional<TensorId>& id,
                          const Shape& expected) const {
    return id ? ValidateTensorShape(part, *id, expected) : Status();
  }
  // Refuses a coded tensor, for tensors that kernels index directly. REQUIRES: the id is in range.
  Status ValidateNotCoded(const std::string& part, TensorId id) const {
    if (tensors_[id].coded() == nullptr) return {};
    return InvalidPart(part, "a tensor that is not coded", "coded tensor " + tensors_[id].name);
  }
  Status ValidateTensors(const std::string& part, std::span<const BlockTensor> tensors) const {
    for (const BlockTensor& tensor : tensors) {
      KINGLET_RETURN_IF_ERROR(ValidateOptional(part + ", " + tensor.name, tensor.id, tensor.shape));
    }
    return {};
  }

  Status ValidateQuantisers(const std::string& part,
                            std::span<const BlockQuantiser> quantisers) const {
    for (const auto& [name, quantiser] : quantisers) {
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser(part + ", quantiser " + name, quantiser));
    }
    return {};
  }
  Status ValidateQuantiser(const std::string& part, const ActivationQuantiser& quantiser) const {
    const auto positive = [](float value) { return std::isfinite(value) && value > 0; };
    if (!positive(quantiser.max_abs) || !positive(quantiser.scale)) {
      return InvalidPart(part, "a finite maximum and scale above 0",
                         NumberText(quantiser.max_abs) + " and " + NumberText(quantiser.scale));
    }
    const double levels = double{quantiser.max_abs} / double{quantiser.scale};
    if (levels > kMaxQuantiserLevels) {
      return InvalidPart(
          part, "a maximum of at most " + NumberText(kMaxQuantiserLevels) + " times the scale",
          NumberText(levels));
    }
    return {};
  }

 protected:
  const std::span<const TensorView> tensors_;
  const std::string& origin_;

 private:
  std::string where_;  // "block NAME, "
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCK_CHECKS_H_
