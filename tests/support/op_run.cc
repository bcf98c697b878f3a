// Packs tensors in memory and runs one node.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "format/bitpack.h"
#include "kernels/nine_bit_row.h"
#include "tests/support/op_cases.h"

namespace kinglet {
namespace {

template <class T>
std::vector<std::byte> Bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> KeptEntries(const std::vector<T>& entries, const std::vector<bool>& kept) {
  std::vector<T> stored;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (kept[i]) stored.push_back(entries[i]);
  }
  return stored;
}

// Which entries a tensor stores: all, or the non-zero ones of a pruned tensor.
template <class T>
std::vector<bool> Kept(const std::vector<T>& entries, bool pruned) {
  std::vector<bool> kept(entries.size(), true);
  for (size_t i = 0; pruned && i < entries.size(); ++i) kept[i] = entries[i] != T{0};
  return kept;
}

bool SameBits(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace

std::span<const std::byte> TensorPool::Keep(std::vector<std::byte> bytes) {
  bytes_ += bytes.size();
  storage_.push_back(std::move(bytes));
  return storage_.back();
}

WeightId TensorPool::Add(const EncodedTensor& tensor) {
  TensorView view{tensor.name, tensor.shape, DenseView{}, std::nullopt};
  std::vector<bool> kept;
  if (const auto* dense = std::get_if<DenseF32>(&tensor.values)) {
    kept = Kept(dense->values, tensor.pruned);
    view.values = DenseView{FloatType::kF32, Keep(Bytes(KeptEntries(dense->values, kept)))};
  } else if (const auto* half = std::get_if<DenseF16>(&tensor.values)) {
    kept = Kept(half->bits, tensor.pruned);
    view.values = DenseView{FloatType::kF16, Keep(Bytes(KeptEntries(half->bits, kept)))};
  } else if (const auto* quantised = std::get_if<Quantised>(&tensor.values)) {
    kept = Kept(quantised->codes, tensor.pruned);
    BitPacker codes(quantised->bits, quantised->codes.size());
    for (const int16_t code : KeptEntries(quantised->codes, kept)) {
      codes.Append(static_cast<uint32_t>(int32_t{code}));
    }
    BitPacker scales(31, quantised->scales.size());
    for (const float scale : quantised->scales) scales.Append(std::bit_cast<uint32_t>(scale));
    view.values = PackedView{quantised->bits, quantised->rule, Keep(codes.Finish()),
                             ScalesView{quantised->scales.size(), 31, 0, Keep(scales.Finish())}};
  } else if (const auto* coded = std::get_if<Coded>(&tensor.values)) {
    CodedView packed{coded->scheme, {}, std::nullopt};
    if (const auto* codes = std::get_if<std::vector<uint32_t>>(&coded->codes)) {
      BitPacker packer(coded->scheme.CodeBits(), codes->size());
      for (const uint32_t code : *codes) packer.Append(code);
      packed.codes = Keep(packer.Finish());
    } else if (const auto* seed = std::get_if<HashSeed>(&coded->codes)) {
      packed.seed = seed->value;
    }
    view.values = std::move(packed);
  }
  if (tensor.pruned) {
    BitPacker mask(1, kept.size());
    for (const bool bit : kept) mask.Append(bit ? 1 : 0);
    const auto nonzeros = static_cast<uint64_t>(std::count(kept.begin(), kept.end(), true));
    view.mask = MaskView{Keep(mask.Finish()), nonzeros};
  }
  views_.push_back(std::move(view));
  return static_cast<WeightId>(views_.size() - 1);
}

OpRun::OpRun(const OpCase& op_case, size_t real_bytes)
    : op_case_(&op_case),
      real_bytes_(real_bytes),
      layout_(LayOut(op_case.plan, real_bytes).value()),
      scratch_(layout_.scratch_bytes / sizeof(Line)),
      state_(layout_.state_bytes / sizeof(Line)) {}

StreamFrame OpRun::FrameNow() const {
  StreamFrame frame{reinterpret_cast<std::byte*>(scratch_.data()),
                    reinterpret_cast<std::byte*>(state_.data()),
                    op_case_->position,
                    op_case_->token,
                    op_case_->source_length,
                    0,
                    batch_};
  frame.spelling = op_case_->spelling;
  frame.spelt = op_case_->spelt;
  return frame;
}

namespace {

void StoreRows(const BufferSpec& buffer, std::span<const int32_t> codes, uint8_t* to) {
  const NineBitRow row{buffer.row};
  for (size_t first = 0; first < codes.size(); first += row.count, to += row.Bytes()) {
    row.Store([&](uint64_t i) { return codes[first + i]; }, to);
  }
}

}  // namespace

void OpRun::Run(const Kernel& kernel) {
  const StreamFrame frame = FrameNow();
  if (!scratch_.empty()) std::memset(frame.scratch, 0xA5, scratch_.size() * sizeof(Line));
  if (!state_.empty()) std::memset(frame.state, 0xA5, state_.size() * sizeof(Line));
  for (size_t id = 0; id < op_case_->contents.size(); ++id) {
    const InitialBuffer& initial = op_case_->contents[id];
    const Slot& slot = layout_.slots[id];
    const Element element = op_case_->plan.buffers[id].element;
    if (element == Element::kCode9) {
      StoreRows(op_case_->plan.buffers[id], initial.integers, slot.At<uint8_t>(frame));
      continue;
    }
    for (size_t i = 0; i < initial.floats.size(); ++i) {
      if (real_bytes_ == sizeof(double)) {
        slot.At<double>(frame)[i] = initial.floats[i];
      } else {
        slot.At<float>(frame)[i] = initial.floats[i];
      }
    }
    for (size_t i = 0; i < initial.integers.size(); ++i) {
      if (element == Element::kCode16) {
        slot.At<int16_t>(frame)[i] = static_cast<int16_t>(initial.integers[i]);
      } else {
        slot.At<int32_t>(frame)[i] = initial.integers[i];
      }
    }
  }
  RunAgain(kernel);
}

void OpRun::RunAgain(const Kernel& kernel) {
  StreamFrame frame = FrameNow();
  kernel.Run({&frame, 1});
}

std::vector<double> OpRun::Values(BufferId id) const {
  const StreamFrame frame = FrameNow();
  const Slot& slot = layout_[id];
  const Element element = op_case_->plan.buffer(id).element;
  std::vector<double> values(slot.count);
  for (size_t i = 0; i < slot.count; ++i) {
    if (element == Element::kCode9) {
      const NineBitRow row{op_case_->plan.buffer(id).row};
      values[i] = row.Code(slot.At<uint8_t>(frame) + i / row.count * row.Bytes(), i % row.count);
    } else if (element == Element::kCode16) {
      values[i] = slot.At<int16_t>(frame)[i];
    } else if (element != Element::kReal) {
      values[i] = slot.At<int32_t>(frame)[i];
    } else {
      values[i] = real_bytes_ == sizeof(double) ? slot.At<double>(frame)[i]
                                                : double{slot.At<float>(frame)[i]};
    }
  }
  return values;
}

namespace {

// Attention's weights of window slots that are not visible.
bool HasNoMeaning(const OpCase& op_case, BufferId id, size_t entry) {
  const auto* attention = std::get_if<WindowAttention>(&op_case.plan.nodes.front().op);
  return attention != nullptr && attention->weights == id &&
         entry % attention->window < FirstVisible(*attention, op_case.position);
}

}  // namespace

std::string OpRun::Difference(const OpRun& other) const {
  const auto differ = [&](const std::string& where, size_t i, auto mine, auto theirs) {
    return where + "[" + std::to_string(i) + "]: " + std::to_string(mine) + " against " +
           std::to_string(theirs);
  };
  const StreamFrame frame = FrameNow(), theirs = other.FrameNow();
  for (size_t id = 0; id < layout_.slots.size(); ++id) {
    const BufferSpec& buffer = op_case_->plan.buffers[id];
    const Slot& slot = layout_.slots[id];
    if (buffer.element != Element::kReal || real_bytes_ != sizeof(float)) continue;
    for (size_t i = 0; i < slot.count; ++i) {
      if (HasNoMeaning(*op_case_, static_cast<BufferId>(id), i)) continue;
      const float a = slot.At<float>(frame)[i], b = slot.At<float>(theirs)[i];
      if (!SameBits(a, b)) return differ(buffer.name, i, a, b);
    }
  }
  // All other bytes: codes, words and the bytes between buffers.
  const auto compare = [&](const std::vector<Line>& mine, const std::vector<Line>& others,
                           bool state) {
    std::vector<bool> real(mine.size() * sizeof(Line));
    for (size_t id = 0; id < layout_.slots.size(); ++id) {
      const Slot& slot = layout_.slots[id];
      if (slot.state != state || op_case_->plan.buffers[id].element != Element::kReal) continue;
      std::fill_n(real.begin() + static_cast<ptrdiff_t>(slot.offset), slot.count * real_bytes_,
                  true);
    }
    for (size_t i = 0; i < real.size(); ++i) {
      const std::byte a = mine[i / 64].bytes[i % 64], b = others[i / 64].bytes[i % 64];
      if (!real[i] && a != b) {
        return differ(state ? "state byte" : "scratch byte", i, std::to_integer<int>(a),
                      std::to_integer<int>(b));
      }
    }
    return std::string();
  };
  const std::string scratch = compare(scratch_, other.scratch_, false);
  return scratch.empty() ? compare(state_, other.state_, true) : scratch;
}

}  // namespace kinglet
