#include "converters/checkpoints/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/pickle_text.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/input_file.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
// Strings may take this many times the bytes of the file: a pickle can repeat one string.
constexpr uint64_t kMaxCopies = 64;
constexpr auto kNumpyTypes = std::to_array<NamedElementType>({{"|i1", ElementType::kI8},
                                                              {"|u1", ElementType::kU8},
                                                              {"|b1", ElementType::kBool},
                                                              {"<i2", ElementType::kI16},
                                                              {"<u2", ElementType::kU16},
                                                              {"<i4", ElementType::kI32},
                                                              {"<u4", ElementType::kU32},
                                                              {"<i8", ElementType::kI64},
                                                              {"<u8", ElementType::kU64},
                                                              {"<f2", ElementType::kF16},
                                                              {"<f4", ElementType::kF32},
                                                              {"<f8", ElementType::kF64}});

// Far more than any array of a checkpoint has, and the limit of NumPy 1.
constexpr size_t kMaxNpyDimensions = 32;

Status RefuseNpy(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "npy array", where, expected, found);
}

// Reads the header's text, the Python literal of a dict with a string, a bool and a tuple of
// integers.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  bool Accept(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  std::optional<std::string> String() {
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  std::optional<bool> Boolean() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    return std::nullopt;
  }
  std::optional<std::vector<uint64_t>> Tuple() {
    if (!Accept('(')) return std::nullopt;
    std::vector<uint64_t> items;
    while (!Accept(')')) {
      SkipSpace();
      uint64_t item = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), item);
      if (error != std::errc() || items.size() == kMaxNpyDimensions) return std::nullopt;
      at_ += static_cast<size_t>(end - begin);
      Accept('L');  // the suffix of long integers in Python 2
      items.push_back(item);
      if (Accept(',')) continue;
      if (!Accept(')')) return std::nullopt;
      break;
    }
    return items;
  }
  std::string Rest() const { return QuotedName(text_.substr(std::min(at_, text_.size()))); }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

Status ParseDictionary(std::string_view text, NpyHeader* header) {
  LiteralReader reader(text);
  const auto refuse = [&reader](const std::string& expected) {
    return RefuseNpy("header", expected, reader.Rest());
  };
  if (!reader.Accept('{')) return refuse("a dict");
  bool have_type = false, have_order = false, have_shape = false;
  while (!reader.Accept('}')) {
    const std::optional<std::string> key = reader.String();
    if (!key || !reader.Accept(':')) return refuse("a key");
    if (*key == "descr" && !have_type) {
      const std::optional<std::string> type = reader.String();
      if (!type) return refuse("a plain type as descr");
      header->type = *type;
      have_type = true;
    } else if (*key == "fortran_order" && !have_order) {
      const std::optional<bool> order = reader.Boolean();
      if (!order) return refuse("a bool as fortran_order");
      header->fortran_order = *order;
      have_order = true;
    } else if (*key == "shape" && !have_shape) {
      std::optional<std::vector<uint64_t>> shape = reader.Tuple();
      if (!shape) return refuse("a tuple of sizes as shape");
      header->shape = std::move(*shape);
      have_shape = true;
    } else {
      return refuse("descr, fortran_order and shape, each once, before");
    }
    if (reader.Accept(',')) continue;
    if (!reader.Accept('}')) return refuse("a comma or a closing brace");
    break;
  }
  if (!have_type || !have_order || !have_shape) {
    return RefuseNpy("header", "descr, fortran_order and shape", QuotedName(text));
  }
  return reader.AtEnd() ? Status() : refuse("nothing after the dict");
}

// The number of entries, after a check that they take exactly `bytes` bytes.
Result<uint64_t> CountOf(const NpyHeader& header, uint64_t item_bytes, uint64_t bytes) {
  uint64_t count = 1;
  bool overflow = false;
  for (const uint64_t size : header.shape) {
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  uint64_t needed = 0;
  overflow |= __builtin_mul_overflow(count, item_bytes, &needed);
  if (overflow) return RefuseNpy("shape", "fewer than 2^64 bytes", "more");
  if (needed != bytes) {
    return RefuseNpy("byte " + std::to_string(header.data_begin),
                     std::to_string(needed) + " bytes of values",
                     std::to_string(bytes) + kCopyAgain);
  }
  return count;
}

template <class Stored, class Value>
Result<NpyArray> Numbers(const NpyHeader& header, std::span<const std::byte> data) {
  KINGLET_ASSIGN_OR_RETURN(const uint64_t count, CountOf(header, sizeof(Stored), data.size()));
  std::vector<Value> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto stored = LoadLittle<Stored>(data.data() + i * sizeof(Stored));
    values[i] = static_cast<Value>(stored);  // NOLINT(bugprone-signed-char-misuse): |i1 is a number
  }
  return NpyArray{header.type, header.shape, std::move(values)};
}

// Strings of a fixed number of UCS-4 characters, padded with zeros.
Result<NpyArray> Strings(const NpyHeader& header, std::span<const std::byte> data) {
  const std::string_view digits = std::string_view(header.type).substr(2);
  const uint64_t characters = ParseNumber<uint64_t>(digits).value_or(0);
  uint64_t item_bytes = 0;
  if (characters == 0 || __builtin_mul_overflow(characters, uint64_t{4}, &item_bytes)) {
    return RefuseNpy("type", "<U with a number of characters", QuotedName(header.type));
  }
  KINGLET_ASSIGN_OR_RETURN(const uint64_t count, CountOf(header, item_bytes, data.size()));
  std::vector<std::string> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* item = data.data() + i * item_bytes;
    uint64_t length = characters;
    while (length > 0 && LoadLittle<uint32_t>(item + 4 * (length - 1)) == 0) --length;
    for (uint64_t c = 0; c < length; ++c) {
      const auto code_point = LoadLittle<uint32_t>(item + 4 * c);
      if (!AppendUtf8(code_point, &values[i])) {
        return RefuseNpy("entry " + std::to_string(i), "Unicode characters",
                         "code point " + std::to_string(code_point));
      }
    }
  }
  return NpyArray{header.type, header.shape, std::move(values)};
}

Result<NpyArray> Objects(const NpyHeader& header, std::span<const std::byte> data) {
  KINGLET_ASSIGN_OR_RETURN(const PickleGraph graph, ReadPickle(data, header.data_begin));
  const auto* items = graph.root->As<PickleList>();
  if (items == nullptr) {
    return RefuseNpy("pickle", "an array or a list of strings", graph.root->Describe());
  }
  KINGLET_RETURN_IF_ERROR(CountOf(header, 1, items->items.size()).status());
  std::vector<std::string> values;
  values.reserve(items->items.size());
  // Many items of a hostile list may share one string, so their total is bounded.
  uint64_t bytes = 0;
  for (const PickleNode* item : items->items) {
    const auto* text = item->As<std::string>();
    if (text == nullptr) {
      return RefuseNpy("entry " + std::to_string(values.size()), "a str", item->Describe());
    }
    bytes += text->size();
    if (bytes / kMaxCopies > data.size()) {
      return RefuseNpy("entry " + std::to_string(values.size()), "strings that the file can store",
                       "one string repeated many times");
    }
    values.push_back(*text);
  }
  return NpyArray{header.type, header.shape, std::move(values)};
}

Result<NpyArray> ParseArray(std::span<const std::byte> bytes) {
  KINGLET_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes));
  if (header.fortran_order && header.shape.size() > 1) {
    return RefuseNpy("header", "values in C order", "Fortran order");
  }
  const std::span<const std::byte> data = bytes.subspan(header.data_begin);
  const std::string& type = header.type;
  if (type == "|i1") return Numbers<int8_t, int64_t>(header, data);
  if (type == "|u1") return Numbers<uint8_t, int64_t>(header, data);
  if (type == "<i2") return Numbers<int16_t, int64_t>(header, data);
  if (type == "<u2") return Numbers<uint16_t, int64_t>(header, data);
  if (type == "<i4") return Numbers<int32_t, int64_t>(header, data);
  if (type == "<u4") return Numbers<uint32_t, int64_t>(header, data);
  if (type == "<i8") return Numbers<int64_t, int64_t>(header, data);
  if (type == "<f4") return Numbers<float, float>(header, data);
  if (type == "<f8") return Numbers<double, double>(header, data);
  if (type.starts_with("<U")) return Strings(header, data);
  if (type == "|O") return Objects(header, data);
  if (type.starts_with('>')) {
    return RefuseNpy("type", "values in little-endian order", "big-endian " + QuotedName(type));
  }
  return RefuseNpy("type", "integers up to 64 bits, <f4, <f8, <U or strings as |O",
                   QuotedName(type));
}

}  // namespace

std::optional<ElementType> NumpyElementType(std::string_view name) {
  return FindElementType(kNumpyTypes, name);
}

std::string ListNumpyTypes() { return ListNames(kNumpyTypes); }

bool LooksLikeNpy(std::span<const std::byte> bytes) {
  return bytes.size() >= kNpyMagic.size() &&
         std::equal(kNpyMagic.begin(), kNpyMagic.end(), bytes.begin(),
                    [](char c, std::byte byte) { return static_cast<std::byte>(c) == byte; });
}

Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes) {
  if (!LooksLikeNpy(bytes)) return RefuseNpy("byte 0", "the magic string of .npy", "other bytes");
  constexpr size_t kVersion = 6;
  if (bytes.size() < kVersion + 2) return RefuseNpy("byte 6", "a version", "the end");
  const auto major = static_cast<unsigned>(bytes[kVersion]);
  if (major < 1 || major > 3 || bytes[kVersion + 1] != std::byte{0}) {
    return RefuseNpy(
        "byte 6", "version 1.0, 2.0 or 3.0",
        std::to_string(major) + "." + std::to_string(static_cast<unsigned>(bytes[kVersion + 1])));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t text_begin = kVersion + 2 + length_bytes;
  if (bytes.size() < text_begin) return RefuseNpy("byte 8", "the header's length", "the end");
  const std::byte* length_at = bytes.data() + kVersion + 2;
  const uint64_t length =
      major == 1 ? LoadLittle<uint16_t>(length_at) : LoadLittle<uint32_t>(length_at);
  if (length > bytes.size() - text_begin) {
    return RefuseNpy("byte 8",
                     "a header of at most the " + std::to_string(bytes.size() - text_begin) +
                         " bytes that remain",
                     std::to_string(length));
  }
  NpyHeader header;
  header.data_begin = text_begin + length;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + text_begin, length);
  KINGLET_RETURN_IF_ERROR(ParseDictionary(text, &header));
  return header;
}

Result<NpyArray> ParseNpy(std::span<const std::byte> bytes) {
  try {
    return ParseArray(bytes);
  } catch (const std::exception&) {  // bad_alloc, or length_error of a size beyond any memory
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "npy array", "values", "memory for the array",
                           "none");
  }
}

Result<NpyArray> ReadNpy(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  Result<NpyArray> array = ParseNpy(std::as_bytes(std::span<const char>(bytes)));
  if (!array.ok()) return InFile(path, array.status());
  return array;
}

}  // namespace kinglet
