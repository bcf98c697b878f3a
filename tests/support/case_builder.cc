#include "tests/support/case_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace kinglet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<float, 10> kSpecials = {std::numeric_limits<float>::quiet_NaN(),
                                             kInfinity,
                                             -kInfinity,
                                             1e-45f,
                                             -3e-39f,
                                             0.0f,
                                             -0.0f,
                                             3e38f,
                                             -3e38f,
                                             1.5f};

}  // namespace

ActivationQuantiser QuantiserOf(int bits, float max_abs) {
  const auto largest = static_cast<float>((int64_t{1} << (bits - 1)) - 1);
  return {max_abs, max_abs / largest};
}

std::string CaseName(const std::string& op, std::initializer_list<int64_t> numbers) {
  std::string name = op;
  for (const int64_t number : numbers) name += "/" + std::to_string(number);
  return name;
}

CaseBuilder::CaseBuilder(std::string name, uint64_t seed) : random_(seed) {
  case_.name = std::move(name);
}

std::vector<float> CaseBuilder::RandomFloats(uint64_t count, Fill fill, float limit) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = limit * random_.Signed();
    const uint32_t die = random_.Below(8);
    if (fill == Fill::kExtreme) value = value < 0 ? -limit : limit;
    if (fill == Fill::kZero) value = value < 0 ? -0.0f : 0.0f;
    if (fill == Fill::kTiny) value = static_cast<float>(die) * 1e-45f;
    if (fill == Fill::kSpecial && die == 0) {
      value = kSpecials[random_.Below(kSpecials.size())];
    }
  }
  return values;
}

BufferId CaseBuilder::Add(BufferSpec spec, InitialBuffer initial) {
  case_.plan.buffers.push_back(std::move(spec));
  case_.contents.push_back(std::move(initial));
  return static_cast<BufferId>(case_.plan.buffers.size() - 1);
}

BufferId CaseBuilder::Floats(const std::string& name, uint64_t count, Fill fill, bool state) {
  return Add({name, Element::kReal, count, state}, {RandomFloats(count, fill), {}});
}

BufferId CaseBuilder::Given(const std::string& name, std::vector<float> values) {
  const uint64_t count = values.size();
  return Add({name, Element::kReal, count}, {std::move(values), {}});
}

BufferId CaseBuilder::Codes(const std::string& name, uint64_t count, int bits, Fill fill,
                            bool state) {
  const ActivationQuantiser quantiser = QuantiserOf(bits);
  const int64_t largest = LargestCode(quantiser);
  std::vector<int32_t> codes(count);
  for (int32_t& code : codes) {
    const int64_t random = int64_t{random_.Below(static_cast<uint64_t>(2 * largest + 1))};
    code = static_cast<int32_t>(random - largest);
    // Values of one sign, so that sums grow as large as possible.
    if (fill == Fill::kExtreme) code = static_cast<int32_t>(-largest);
    if (fill == Fill::kZero) code = 0;
  }
  const Element element = bits <= 16 ? Element::kCode16 : Element::kCode32;
  return Add({name, element, count, state, quantiser}, {{}, std::move(codes)});
}

BufferId CaseBuilder::NineBitRows(const std::string& name, uint64_t row, uint64_t rows, Fill fill) {
  const BufferId id = Codes(name, rows * row, 9, fill, true);
  BufferSpec& buffer = case_.plan.buffers[static_cast<size_t>(id)];
  buffer.element = Element::kCode9;
  buffer.row = row;
  return id;
}

BufferId CaseBuilder::CacheKeys(uint64_t width, uint64_t capacity, int bits, Fill fill) {
  if (bits == 9) return NineBitRows("keys", width, capacity, fill);
  return Vector("keys", capacity * width, bits, fill, true);
}

void CaseBuilder::ClearFrom(BufferId id, uint64_t first) {
  InitialBuffer& initial = case_.contents[static_cast<size_t>(id)];
  const auto clear = [first](auto& elements) {
    if (first < elements.size()) {
      std::fill(elements.begin() + static_cast<ptrdiff_t>(first), elements.end(), 0);
    }
  };
  clear(initial.floats);
  clear(initial.integers);
}

BufferId CaseBuilder::Tokens(uint64_t count) {
  return Add({"tokens", Element::kUint32, count, true}, {{}, std::vector<int32_t>(count, 9)});
}

BufferId CaseBuilder::GivenTokens(const std::string& name, std::vector<int32_t> tokens) {
  const uint64_t count = tokens.size();
  return Add({name, Element::kUint32, count}, {{}, std::move(tokens)});
}

BufferId CaseBuilder::Vector(const std::string& name, uint64_t count, int bits, Fill fill,
                             bool state) {
  return bits == 0 ? Floats(name, count, fill, state) : Codes(name, count, bits, fill, state);
}

WeightId CaseBuilder::Matrix(uint64_t rows, uint64_t cols, Storage storage, int bits, bool pruned,
                             Fill fill) {
  EncodedTensor tensor{"weight", {rows, cols}, DenseF32{}, pruned};
  const uint64_t count = rows * cols;
  if (storage == Storage::kF32 || storage == Storage::kF16) {
    std::vector<float> values = RandomFloats(count, fill, 0.25f);
    if (pruned) {
      for (float& value : values) value = random_.Below(3) == 0 ? value : 0.0f;
    }
    if (storage == Storage::kF32) {
      tensor.values = DenseF32{std::move(values)};
    } else {
      DenseF16 half;
      for (const float value : values) half.bits.push_back(FloatToHalf(value));
      tensor.values = std::move(half);
    }
    return pool_->Add(tensor);
  }
  Quantised quantised;
  quantised.bits = bits;
  const int32_t smallest = -(1 << (bits - 1));
  for (uint64_t i = 0; i < count; ++i) {
    int32_t code = static_cast<int32_t>(random_.Below(uint64_t{1} << bits)) + smallest;
    if (fill == Fill::kExtreme) code = smallest;
    if (pruned && random_.Below(3) != 0) code = 0;
    quantised.codes.push_back(static_cast<int16_t>(code));
  }
  // A scale with few mantissa bits, so that code * scale is exact (NUMERICS, rule 1).
  const auto scale = [&] {
    const float random = (1.5f + random_.Signed()) / static_cast<float>(-smallest);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(random) & 0xFFFF0000u);
  };
  quantised.rule = ScaleRule::kMultiplyPerRow;
  if (storage != Storage::kPerRow) {
    quantised.rule = storage == Storage::kPerTensor ? ScaleRule::kMultiplyPerTensor
                                                    : ScaleRule::kDividePerTensor;
  }
  const uint64_t scales = storage == Storage::kPerRow ? rows : 1;
  for (uint64_t i = 0; i < scales; ++i) quantised.scales.push_back(scale());
  if (storage == Storage::kDivided) quantised.scales = {static_cast<float>(-smallest) * 1.3f};
  tensor.values = std::move(quantised);
  return pool_->Add(tensor);
}

WeightId CaseBuilder::DenseVector(uint64_t count) {
  return pool_->Add({"vector", {count}, DenseF32{RandomFloats(count, Fill::kRandom, 1.0f)}, false});
}

WeightId CaseBuilder::DividedVector(uint64_t count, int bits) {
  Quantised quantised;
  quantised.bits = bits;
  quantised.rule = ScaleRule::kDividePerTensor;
  quantised.scales = {static_cast<float>(1 << (bits - 1)) * 1.7f};
  for (uint64_t i = 0; i < count; ++i) {
    const auto code = static_cast<int32_t>(random_.Below(uint64_t{1} << bits));
    quantised.codes.push_back(static_cast<int16_t>(code - (1 << (bits - 1))));
  }
  return pool_->Add({"bias", {count}, std::move(quantised), false});
}

std::vector<double> CaseBuilder::Values(BufferId id) const {
  const InitialBuffer& initial = case_.contents[static_cast<size_t>(id)];
  std::vector<double> values(initial.floats.begin(), initial.floats.end());
  const BufferSpec& buffer = case_.plan.buffer(id);
  for (const int32_t code : initial.integers)
    values.push_back(code * double{buffer.quantiser->scale});
  return values;
}

OpCase CaseBuilder::Finish(Op op, double ref64_tolerance, uint64_t position, uint32_t token) {
  case_.tensors = pool_;
  case_.plan.weights = pool_->views();
  case_.plan.nodes = {{"node", std::move(op)}};
  case_.position = position;
  case_.token = token;
  case_.ref64_tolerance = ref64_tolerance;
  return std::move(case_);
}

}  // namespace kinglet
