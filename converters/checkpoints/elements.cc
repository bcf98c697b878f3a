#include "converters/checkpoints/elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "format/encoding.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

// How far a view reaches.
struct Extent {
  uint64_t count;   // entries of the tensor
  uint64_t span;    // elements from the first to the last that it reads; 0 if it has no entries
  bool contiguous;  // its entries are consecutive elements, in row-major order
};

// Returns nullopt if a size overflows.
std::optional<Extent> ExtentOf(const StridedView& view) {
  Extent extent = {1, 1, true};
  if (std::find(view.shape.begin(), view.shape.end(), 0U) != view.shape.end()) {
    return Extent{0, 0, true};
  }
  for (size_t i = view.shape.size(); i-- > 0;) {
    const uint64_t size = view.shape[i];
    // The stride of a dimension of one entry is never used.
    if (size != 1 && view.strides[i] != extent.count) extent.contiguous = false;
    uint64_t reach = 0;
    if (__builtin_mul_overflow(size - 1, view.strides[i], &reach) ||
        __builtin_add_overflow(extent.span, reach, &extent.span) ||
        __builtin_mul_overflow(extent.count, size, &extent.count)) {
      return std::nullopt;
    }
  }
  return extent;
}

// Visits a view's entries in the order of their elements in the file.
class ElementOrder {
 public:
  // Returns nullopt if an element belongs to several entries, or dimensions interleave.
  static std::optional<ElementOrder> Of(const StridedView& view) {
    ElementOrder order;
    uint64_t step = 1;
    for (size_t i = view.shape.size(); i-- > 0;) {
      if (view.shape[i] != 1)
        order.inside_out_.push_back({view.shape[i], view.strides[i], step, 0});
      step *= view.shape[i];
    }
    std::sort(order.inside_out_.begin(), order.inside_out_.end(),
              [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
    uint64_t reach = 0;
    for (const Dimension& dimension : order.inside_out_) {
      if (dimension.stride <= reach) return std::nullopt;
      reach += (dimension.size - 1) * dimension.stride;
    }
    return order;
  }

  uint64_t element() const { return element_; }  // from the view's first one
  uint64_t entry() const { return entry_; }      // row-major

  // The last entry is followed by the first.
  void Next() {
    for (Dimension& dimension : inside_out_) {
      element_ += dimension.stride;
      entry_ += dimension.step;
      if (++dimension.index < dimension.size) return;
      element_ -= dimension.stride * dimension.size;
      entry_ -= dimension.step * dimension.size;
      dimension.index = 0;
    }
  }

 private:
  struct Dimension {
    uint64_t size, stride, step, index;
  };
  std::vector<Dimension> inside_out_;  // the smallest stride first
  uint64_t element_ = 0, entry_ = 0;
};

// A view's entries in row-major order. `elements` starts with the view's first element.
template <class Value>
std::vector<Value> Gather(const StridedView& view, uint64_t count,
                          const std::vector<Value>& elements) {
  std::vector<Value> values(count);
  std::vector<uint64_t> index(view.shape.size(), 0);
  uint64_t at = 0;
  for (Value& value : values) {
    value = elements[at];
    for (size_t i = index.size(); i-- > 0;) {
      at += view.strides[i];
      if (++index[i] < view.shape[i]) break;
      at -= view.strides[i] * view.shape[i];
      index[i] = 0;
    }
  }
  return values;
}

template <class Stored, class Value, class Function>
void ForEach(std::span<const std::byte> bytes, std::span<Value> out, Function function) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = function(LoadLittle<Stored>(bytes.data() + i * sizeof(Stored)));
  }
}

// A layout of 8-bit floats: a sign, exponent bits, mantissa bits.
struct ByteFloat {
  int mantissa_bits, bias;
  bool infinities;  // the largest exponent is infinity or NaN; otherwise its largest mantissa is
  bool fnuz;        // the byte of -0 is the only NaN
};

float DecodeByteFloat(uint8_t byte, const ByteFloat& layout) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const float sign = (byte & 0x80) != 0 ? -1.0F : 1.0F;
  const int magnitude = byte & 0x7f;
  const int mantissa = magnitude & ((1 << layout.mantissa_bits) - 1);
  const int exponent = magnitude >> layout.mantissa_bits;
  if (layout.fnuz && byte == 0x80) return kNaN;
  const bool largest = exponent == 0x7f >> layout.mantissa_bits;
  if (!layout.fnuz && largest && layout.infinities) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : kNaN;
  }
  if (!layout.fnuz && magnitude == 0x7f) return kNaN;
  const int implicit = exponent == 0 ? 0 : 1 << layout.mantissa_bits;
  const int scale = std::max(exponent, 1) - layout.bias - layout.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(implicit + mantissa), scale);
}

float DecodeByteFloat(ElementType type, uint8_t byte) {
  switch (type) {
    case ElementType::kF8E4M3:
      return DecodeByteFloat(byte, {3, 7, false, false});
    case ElementType::kF8E5M2:
      return DecodeByteFloat(byte, {2, 15, true, false});
    case ElementType::kF8E4M3Fnuz:
      return DecodeByteFloat(byte, {3, 8, false, true});
    case ElementType::kF8E5M2Fnuz:
      return DecodeByteFloat(byte, {2, 16, false, true});
    default:  // kF8E8M0
      return byte == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, byte - 127);
  }
}

template <class Value>
void DecodeElements(ElementType type, std::span<const std::byte> bytes, std::span<Value> out) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): a signed byte is a number here
  const auto cast = [](auto value) { return static_cast<Value>(value); };
  switch (type) {
    case ElementType::kI64:
      return ForEach<int64_t>(bytes, out, cast);
    case ElementType::kI32:
      return ForEach<int32_t>(bytes, out, cast);
    case ElementType::kI16:
      return ForEach<int16_t>(bytes, out, cast);
    case ElementType::kI8:
      return ForEach<int8_t>(bytes, out, cast);
    case ElementType::kU64:
      return ForEach<uint64_t>(bytes, out, cast);
    case ElementType::kU32:
      return ForEach<uint32_t>(bytes, out, cast);
    case ElementType::kU16:
      return ForEach<uint16_t>(bytes, out, cast);
    case ElementType::kU8:
      return ForEach<uint8_t>(bytes, out, cast);
    case ElementType::kBool:
      return ForEach<uint8_t>(bytes, out,
                              [](uint8_t byte) { return static_cast<Value>(byte != 0 ? 1 : 0); });
    case ElementType::kF64:
    case ElementType::kF32:
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kF8E4M3:
    case ElementType::kF8E5M2:
    case ElementType::kF8E4M3Fnuz:
    case ElementType::kF8E5M2Fnuz:
    case ElementType::kF8E8M0:
      break;
  }
  if constexpr (std::is_same_v<Value, float>) {
    switch (type) {
      case ElementType::kF64:
        return ForEach<double>(bytes, out, cast);
      case ElementType::kF16:
        return ForEach<uint16_t>(bytes, out, HalfToFloat);
      case ElementType::kBF16:
        return ForEach<uint16_t>(
            bytes, out, [](uint16_t word) { return std::bit_cast<float>(uint32_t{word} << 16); });
      case ElementType::kF32:
        return ForEach<float>(bytes, out, cast);
      default:
        return ForEach<uint8_t>(bytes, out,
                                [type](uint8_t byte) { return DecodeByteFloat(type, byte); });
    }
  }
}

template <class Value>
void DecodeElements(const StoredElements& stored, std::span<const std::byte> bytes,
                    std::span<Value> out) {
  DecodeElements(stored.type, bytes, out);
  if (stored.negated) std::transform(out.begin(), out.end(), out.begin(), std::negate<>());
}

// Reads a view's elements once, front to back, and stores each at its entry's index.
template <class Value, class Read>
Result<std::vector<Value>> Scatter(const StoredElements& stored, ElementOrder order, uint64_t count,
                                   const Read& read) {
  std::vector<Value> values(count), elements;
  uint64_t placed = 0;
  KINGLET_RETURN_IF_ERROR(
      read([&](uint64_t first, uint64_t length, std::span<const std::byte> piece) {
        elements.resize(length);
        DecodeElements(stored, piece, std::span(elements));
        for (; placed < count && order.element() - first < length; ++placed, order.Next()) {
          values[order.entry()] = elements[order.element() - first];
        }
      }));
  return values;
}

template <class Value>
Result<std::vector<Value>> Read(const StoredElements& stored, const StridedView& view) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, stored.file, stored.where, expected, found);
  };
  const std::optional<Extent> extent =
      view.shape.size() == view.strides.size() ? ExtentOf(view) : std::nullopt;
  if (!extent) return refuse("a tensor of fewer than 2^64 entries", "more");
  if (extent->count == 0) return std::vector<Value>();
  if (const uint64_t most = std::max(stored.count, kMaxRepeated); extent->count > most) {
    return refuse("a tensor of at most " + std::to_string(most) + " entries",
                  std::to_string(extent->count) + " of " + std::to_string(stored.count) +
                      " elements (in PyTorch, save tensor.contiguous())");
  }
  if (view.offset > stored.count || extent->span > stored.count - view.offset) {
    return refuse("a tensor inside " + std::to_string(stored.count) + " elements",
                  std::to_string(extent->span) + " from " + std::to_string(view.offset));
  }
  try {
    // Calls visit(first, count, bytes) for each piece; elements count from the view's first one.
    const auto read = [&](const auto& visit) {
      const uint64_t element = ElementBytes(stored.type);
      uint64_t first = 0;
      return stored.read(view.offset * element, extent->span * element,
                         [&](std::span<const std::byte> piece) {
                           visit(first, piece.size() / element, piece);
                           first += piece.size() / element;
                         });
    };
    const auto order = extent->contiguous ? std::nullopt : ElementOrder::Of(view);
    if (order) return Scatter<Value>(stored, *order, extent->count, read);
    std::vector<Value> elements(extent->span);
    KINGLET_RETURN_IF_ERROR(
        read([&](uint64_t first, uint64_t count, std::span<const std::byte> piece) {
          DecodeElements(stored, piece, std::span(elements).subspan(first, count));
        }));
    if (extent->contiguous) return elements;
    return Gather(view, extent->count, elements);
  } catch (const std::exception&) {  // bad_alloc, or length_error of a size beyond any memory
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, stored.file, stored.where,
                           "memory for " + std::to_string(extent->span) + " values", "none");
  }
}

}  // namespace

size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kI64:
    case ElementType::kU64:
      return 8;
    case ElementType::kF32:
    case ElementType::kI32:
    case ElementType::kU32:
      return 4;
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kI16:
    case ElementType::kU16:
      return 2;
    case ElementType::kI8:
    case ElementType::kU8:
    case ElementType::kBool:
    case ElementType::kF8E4M3:
    case ElementType::kF8E5M2:
    case ElementType::kF8E4M3Fnuz:
    case ElementType::kF8E5M2Fnuz:
    case ElementType::kF8E8M0:
      break;
  }
  return 1;
}

std::string_view ElementName(ElementType type) {
  static constexpr std::array<std::string_view, 18> kNames = {
      "f64", "f32", "f16",  "bf16", "i64",     "i32",     "i16",         "i8",          "u32",
      "u16", "u8",  "bool", "u64",  "f8_e4m3", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0"};
  return kNames[static_cast<size_t>(type)];
}

bool IsFloat(ElementType type) {
  return type <= ElementType::kBF16 || type >= ElementType::kF8E4M3;
}

std::optional<ElementType> FindElementType(std::span<const NamedElementType> types,
                                           std::string_view name) {
  const auto found = std::find_if(types.begin(), types.end(), [name](const NamedElementType& type) {
    return type.name == name;
  });
  return found == types.end() ? std::nullopt : std::optional(found->type);
}

std::string ListNames(std::span<const NamedElementType> types) {
  std::string text;
  for (const NamedElementType& type : types) {
    if (!text.empty()) text += &type == &types.back() ? " or " : ", ";
    text += type.name;
  }
  return text;
}

uint64_t CountEntries(const std::vector<uint64_t>& shape) {
  uint64_t entries = 1;
  for (const uint64_t dimension : shape) {
    if (dimension == 0) return 0;
    if (__builtin_mul_overflow(entries, dimension, &entries)) entries = UINT64_MAX;
  }
  return entries;
}

StridedView WholeView(const std::vector<uint64_t>& shape, bool fortran_order) {
  StridedView view = {0, shape, std::vector<uint64_t>(shape.size())};
  uint64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t dimension = fortran_order ? i : shape.size() - 1 - i;
    view.strides[dimension] = stride;
    stride *= shape[dimension];
  }
  return view;
}

StridedView RowsOf(StridedView view, uint64_t first, uint64_t count) {
  uint64_t skipped = 0;
  if (__builtin_mul_overflow(first, view.strides[0], &skipped) ||
      __builtin_add_overflow(view.offset, skipped, &view.offset)) {
    view.offset = UINT64_MAX;  // outside all elements: reading refuses the view
  }
  view.shape[0] = count;
  return view;
}

Result<std::vector<float>> ReadFloats(const StoredElements& elements, const StridedView& view) {
  return Read<float>(elements, view);
}

Result<std::vector<int64_t>> ReadIntegers(const StoredElements& elements, const StridedView& view) {
  if (!IsFloat(elements.type)) return Read<int64_t>(elements, view);
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, elements.file, elements.where, "integers",
                         "elements of a float type");
}

}  // namespace kinglet
