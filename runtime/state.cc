#include "runtime/state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "format/digest.h"
#include "kernels/nine_bit_row.h"
#include "runtime/stream.h"

namespace kinglet {
namespace {

constexpr uint32_t kMagic = 0x534C474B;  // "KGLS"
constexpr uint32_t kVersion = 4;
constexpr uint64_t kDigestDigits = 32;
constexpr uint64_t kHeaderBytes = 4 * sizeof(uint32_t) + 2 * sizeof(uint64_t) + kDigestDigits;
constexpr uint64_t kChecksumBytes = sizeof(uint64_t);
// More than the tokens of any text; sums with this position do not overflow.
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;

uint64_t PayloadBytes(const Model& model, uint64_t tokens, uint64_t source_length) {
  uint64_t bytes = 0;
  for (const StateRegion& region : model.layout().state_regions) {
    bytes += region.SlotsWritten(tokens, source_length) * region.slot_bytes;
  }
  return bytes;
}

// The tokens of the longest source; 0 without an encoder.
uint64_t LongestSource(const Model& model) {
  return model.plan().encoder ? model.plan().encoder->window : 0;
}

template <class T>
void Put(std::byte*& to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  to += sizeof value;
}

template <class T>
T Take(const std::byte*& from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  from += sizeof value;
  return value;
}

Status Refuse(StatusCode code, const std::string& where, const std::string& expected,
              const std::string& found) {
  return Status::Refusal(code, "state", where, expected, found);
}

Status RefuseEntry(const BufferSpec& buffer, uint64_t index, const std::string& expected,
                   const std::string& found) {
  return Refuse(KINGLET_CORRUPT, buffer.name + "[" + std::to_string(index) + "]", expected, found);
}

// Calls check(index, value), which returns a Status, for each element of the bytes.
template <class T, class Check>
Status ForEach(std::span<const std::byte> bytes, const Check& check) {
  const std::byte* from = bytes.data();
  for (uint64_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    KINGLET_RETURN_IF_ERROR(check(i, Take<T>(from)));
  }
  return Status();
}

// Calls check(index, code) for each code of rows of 9-bit codes, after which zeros pad each row. If
// the padding of a row is not zero, returns padded(index of the row's last code).
template <class Check, class Padded>
Status CheckNineBitRows(const NineBitRow& row, std::span<const std::byte> bytes, const Check& check,
                        const Padded& padded) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint64_t codes = bytes.size() / row.Bytes() * row.count;
  for (uint64_t first = 0; first < codes; first += row.count, at += row.Bytes()) {
    for (uint64_t i = 0; i < row.count; ++i) {
      KINGLET_RETURN_IF_ERROR(check(first + i, row.Code(at, i)));
    }
    for (uint64_t i = row.count; i < row.Padded(); ++i) {
      if (row.Code(at, i) != 0) return padded(first + row.count - 1);
    }
  }
  return Status();
}

// Checks what kernels rely on: ids are indices of tables, and sums of codes must not overflow.
Status CheckEntries(const Model& model, const BufferSpec& buffer,
                    std::span<const std::byte> bytes) {
  const auto code = [&, largest = buffer.quantiser ? LargestCode(*buffer.quantiser) : 0](
                        uint64_t i, int64_t value) {
    if (value >= -largest && value <= largest) return Status();
    return RefuseEntry(buffer, i, "a code of at most " + std::to_string(largest) + " in magnitude",
                       std::to_string(value));
  };
  const auto integer = [&](uint64_t i, uint32_t value) {
    if (value < model.vocabulary_size()) return Status();
    return RefuseEntry(buffer, i, "an id below " + std::to_string(model.vocabulary_size()),
                       std::to_string(value));
  };
  const auto real = [&](uint64_t i, double value) {
    if (std::isfinite(value)) return Status();
    return RefuseEntry(buffer, i, "a finite number", std::to_string(value));
  };
  switch (buffer.element) {
    case Element::kReal:
      return model.backend().real_bytes == sizeof(double) ? ForEach<double>(bytes, real)
                                                          : ForEach<float>(bytes, real);
    case Element::kCode9:
      return CheckNineBitRows({buffer.row}, bytes, code, [&](uint64_t i) {
        return RefuseEntry(buffer, i, "zeros after each row's codes", "other bits");
      });
    case Element::kCode16:
      return ForEach<int16_t>(bytes, code);
    case Element::kCode32:
      return ForEach<int32_t>(bytes, code);
    case Element::kUint32:
      return ForEach<uint32_t>(bytes, integer);
  }
  return Status();
}

}  // namespace

Result<SharedPage> MakePage(std::span<const std::byte> bytes,
                            const std::shared_ptr<MemoryBudget>& budget) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return SharedPage();
  }
  auto page = std::make_shared<StatePage>();
  if (!budget->Claim(sizeof(StatePage))) {
    return Refuse(KINGLET_OUT_OF_MEMORY, "memory",
                  std::to_string(sizeof(StatePage)) + " bytes for each of its pages, of " +
                      std::to_string(budget->limit()) + " that are the model's memory limit",
                  std::to_string(budget->left()) + " left");
  }
  page->memory = MemoryClaim(budget, sizeof(StatePage));
  std::copy(bytes.begin(), bytes.end(), page->bytes.begin());
  std::fill(page->bytes.begin() + static_cast<ptrdiff_t>(bytes.size()), page->bytes.end(),
            std::byte{0});
  page->digest = Digest64(page->bytes);
  return SharedPage(std::move(page));
}

Result<std::shared_ptr<PageTable>> MakePageTable(const Model& model) {
  const uint64_t lane = Stream::Bytes(model, Stream::Queries::kShared);
  if (lane > model.session_memory_limit()) {
    return Refuse(KINGLET_OUT_OF_MEMORY, "memory",
                  "at most " + std::to_string(model.session_memory_limit()) +
                      " bytes, the limit of a session",
                  std::to_string(lane) + " for a lane");
  }
  const uint64_t pages = PageCount(model.layout());
  if (!model.budget()->Claim(pages * sizeof(SharedPage))) {
    return Refuse(
        KINGLET_OUT_OF_MEMORY, "memory",
        std::to_string(pages * sizeof(SharedPage)) + " bytes for its table of pages, of " +
            std::to_string(model.budget()->limit()) + " that are the model's memory limit",
        std::to_string(model.budget()->left()) + " left");
  }
  MemoryClaim claim(model.budget(), pages * sizeof(SharedPage));
  auto table = std::make_shared<PageTable>();
  table->memory = std::move(claim);
  table->pages.resize(pages);
  return table;
}

State::State(std::shared_ptr<const Model> model) : model_(std::move(model)) {
  auto table = std::make_shared<PageTable>();
  table->pages.resize(PageCount(model_->layout()));
  table_ = std::move(table);
}

State::State(std::shared_ptr<const Model> model, uint64_t position, uint32_t last_token,
             uint64_t source_length, std::shared_ptr<const PageTable> pages)
    : model_(std::move(model)),
      position_(position),
      last_token_(last_token),
      source_length_(source_length),
      table_(std::move(pages)) {}

bool State::Fits(const Model& model) const {
  if (model_.get() == &model) return true;
  return model_->backend().real_bytes == model.backend().real_bytes &&
         pages().size() == PageCount(model.layout()) &&
         model_->file().digest() == model.file().digest();
}

bool State::operator==(const State& other) const {
  const auto same_page = [](const SharedPage& a, const SharedPage& b) {
    if (a == b) return true;
    return a && b && a->digest == b->digest && a->bytes == b->bytes;
  };
  return position_ == other.position_ && last_token_ == other.last_token_ &&
         source_length_ == other.source_length_ && Fits(*other.model_) &&
         std::equal(pages().begin(), pages().end(), other.pages().begin(), other.pages().end(),
                    same_page);
}

uint64_t State::Hash() const {
  DigestStream digest;
  const auto add = [&digest](uint64_t value) {
    digest.Add(std::as_bytes(std::span<const uint64_t>(&value, 1)));
  };
  digest.Add(std::as_bytes(std::span<const char>(model_->file().digest())));
  add(model_->backend().real_bytes);
  add(position_);
  add(last_token_);
  add(source_length_);
  for (const SharedPage& page : pages()) add(page ? page->digest : 0);
  return digest.Finish().low;
}

uint64_t State::BlobBytes() const {
  return kHeaderBytes + PayloadBytes(*model_, position_, source_length_) + kChecksumBytes;
}

uint64_t State::LargestBlobBytes(const Model& model) {
  return kHeaderBytes + PayloadBytes(model, kMaxPosition, LongestSource(model)) + kChecksumBytes;
}

void State::WriteBlob(std::span<std::byte> out) const {
  std::byte* to = out.data();
  Put(to, kMagic);
  Put(to, kVersion);
  Put(to, static_cast<uint32_t>(model_->backend().real_bytes));
  Put(to, last_token_);
  Put(to, position_);
  Put(to, source_length_);
  std::memcpy(to, model_->file().digest().data(), kDigestDigits);
  to += kDigestDigits;
  for (const StateRegion& region : model_->layout().state_regions) {
    uint64_t at = region.offset;
    const uint64_t end = at + region.SlotsWritten(position_, source_length_) * region.slot_bytes;
    while (at < end) {
      const uint64_t within = at % StatePage::kBytes;
      const uint64_t bytes = std::min(end - at, StatePage::kBytes - within);
      const SharedPage& page = pages()[at / StatePage::kBytes];
      if (page) {
        std::memcpy(to, page->bytes.data() + within, bytes);
      } else {
        std::memset(to, 0, bytes);
      }
      to += bytes;
      at += bytes;
    }
  }
  Put(to, Digest64(out.first(out.size() - kChecksumBytes)));
}

Result<State> State::ReadBlob(std::shared_ptr<const Model> model, std::span<const std::byte> blob) {
  if (blob.size() < kHeaderBytes + kChecksumBytes) {
    return Refuse(KINGLET_CORRUPT, "size",
                  "at least " + std::to_string(kHeaderBytes + kChecksumBytes) + " bytes",
                  std::to_string(blob.size()));
  }
  const std::byte* from = blob.data();
  if (Take<uint32_t>(from) != kMagic) {
    return Refuse(KINGLET_CORRUPT, "byte 0", "\"KGLS\"", "other bytes: not a state of a stream");
  }
  if (const auto version = Take<uint32_t>(from); version != kVersion) {
    return Refuse(KINGLET_UNSUPPORTED_VERSION, "version", std::to_string(kVersion),
                  std::to_string(version));
  }
  const auto real_bytes = Take<uint32_t>(from);
  const auto last_token = Take<uint32_t>(from);
  const auto position = Take<uint64_t>(from);
  const auto source_length = Take<uint64_t>(from);
  const std::string digest(reinterpret_cast<const char*>(from), kDigestDigits);
  from += kDigestDigits;

  const std::byte* checksum = blob.data() + blob.size() - kChecksumBytes;
  if (Take<uint64_t>(checksum) != Digest64(blob.first(blob.size() - kChecksumBytes))) {
    return Refuse(KINGLET_CORRUPT, "checksum",
                  "the digest of its " + std::to_string(blob.size()) + " bytes",
                  "another: truncated or damaged");
  }
  if (digest != model->file().digest()) {
    return Refuse(KINGLET_MISMATCH, "model digest", model->file().digest(), "\"" + digest + "\"");
  }
  if (real_bytes != model->backend().real_bytes) {
    return Refuse(KINGLET_MISMATCH, "floats",
                  std::to_string(model->backend().real_bytes) + " bytes as backend " +
                      std::string(model->backend().name) + " has",
                  std::to_string(real_bytes));
  }
  if (position > kMaxPosition) {
    return Refuse(KINGLET_CORRUPT, "position", "at most " + std::to_string(kMaxPosition),
                  std::to_string(position));
  }
  if (position == 0 && last_token != 0) {
    return Refuse(KINGLET_CORRUPT, "last token", "0 at position 0", std::to_string(last_token));
  }
  if (last_token >= model->vocabulary_size()) {
    return Refuse(KINGLET_CORRUPT, "last token",
                  "an id below " + std::to_string(model->vocabulary_size()),
                  std::to_string(last_token));
  }
  const uint64_t longest = LongestSource(*model), shortest = longest > 0 && position > 0 ? 1 : 0;
  if (source_length < shortest || source_length > longest) {
    return Refuse(KINGLET_CORRUPT, "tokens of the source",
                  std::to_string(shortest) + " to " + std::to_string(longest),
                  std::to_string(source_length));
  }
  const uint64_t expected =
      kHeaderBytes + PayloadBytes(*model, position, source_length) + kChecksumBytes;
  if (blob.size() != expected) {
    return Refuse(KINGLET_CORRUPT, "size",
                  std::to_string(expected) + " bytes at position " + std::to_string(position),
                  std::to_string(blob.size()));
  }

  try {
    KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<PageTable> table, MakePageTable(*model));
    // Regions are in order of offset, so pages are filled one after the other.
    std::array<std::byte, StatePage::kBytes> page = {};
    uint64_t filled = 0;  // the index of `page`
    const auto finish = [&]() -> Status {
      KINGLET_ASSIGN_OR_RETURN(table->pages[filled], MakePage(page, model->budget()));
      page.fill(std::byte{0});
      return Status();
    };
    for (const StateRegion& region : model->layout().state_regions) {
      const uint64_t bytes = region.SlotsWritten(position, source_length) * region.slot_bytes;
      KINGLET_RETURN_IF_ERROR(
          CheckEntries(*model, model->plan().buffer(region.buffer), {from, bytes}));
      for (uint64_t at = region.offset; at < region.offset + bytes;) {
        if (at / StatePage::kBytes != filled) {
          KINGLET_RETURN_IF_ERROR(finish());
          filled = at / StatePage::kBytes;
        }
        const uint64_t within = at % StatePage::kBytes;
        const uint64_t part = std::min(region.offset + bytes - at, StatePage::kBytes - within);
        std::memcpy(page.data() + within, from, part);
        from += part;
        at += part;
      }
    }
    if (!table->pages.empty()) KINGLET_RETURN_IF_ERROR(finish());
    return State(std::move(model), position, last_token, source_length, table);
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "state: out of memory for its pages");
  }
}

}  // namespace kinglet
