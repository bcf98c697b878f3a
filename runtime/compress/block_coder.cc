#include "runtime/compress/block_coder.h"

#include <algorithm>
#include <utility>

#include "runtime/compress/byte_model.h"
#include "runtime/compress/range_coder.h"
#include "runtime/compress/token_follower.h"
#include "runtime/compress/token_guide.h"

namespace kinglet::compress {
namespace {

// The network predicts if it knows at least one byte in this number.
constexpr size_t kLeastShare = 4;

// How often a block without the network may be stopped.
constexpr size_t kBytesOfRun = 4096;

// In a block's first byte, with the style.
constexpr std::byte kFast{0x80};

// The bytes of a text that are tokens.
size_t KnownBytes(const TokenSpellings& spellings, TokenStyle style,
                  std::span<const std::byte> text) {
  TokenFollower follower(spellings, style);
  std::vector<TokenFollower::Token> done;
  size_t known = 0;
  for (const std::byte byte : text) {
    done.clear();
    follower.Add(std::to_integer<uint8_t>(byte), done);
    for (const TokenFollower::Token& token : done) known += token.rank ? token.length : 0;
  }
  return known;
}

}  // namespace

SharedWords::SharedWords(const Model& model) : special_(SpecialTokensOf(model)) {
  for (const TokenStyle style : StylesOf(model)) {
    spelt_.push_back({style, TokenSpellings(model, style)});
  }
}

TokenStyle SharedWords::StyleOf(std::span<const std::byte> text) const {
  constexpr size_t kLookedAt = 65536;
  const std::span<const std::byte> part = text.first(std::min(text.size(), kLookedAt));
  TokenStyle best = TokenStyle::kNone;
  size_t most = part.size() / kLeastShare;
  for (const auto& [style, spellings] : spelt_) {
    const size_t known = KnownBytes(spellings, style, part);
    if (known <= most) continue;
    most = known;
    best = style;
  }
  return best;
}

const TokenSpellings* SharedWords::Of(TokenStyle style) const {
  const auto found = std::find_if(spelt_.begin(), spelt_.end(),
                                  [&](const Spelt& spelt) { return spelt.style == style; });
  return found == spelt_.end() ? nullptr : &found->spellings;
}

struct BlockCoder::Contents {
  Contents(const SharedWords& words, TokenStyle style, bool fast, size_t length)
      : model({length, style == TokenStyle::kSpaced, fast}), bytes_left(length) {
    if (const TokenSpellings* const spellings = words.Of(style)) {
      guide.emplace(*spellings, style, words.special());
    }
  }

  ByteModel model;
  std::optional<TokenGuide> guide;
  size_t bytes_left;
  std::span<const std::byte> given;  // when compressing
  std::vector<std::byte> out;        // the compressed block, or the text
  std::optional<RangeWriter> writer;
  std::optional<RangeReader> reader;

  void CodeByte() {
    unsigned byte = 0;
    const unsigned next = writer ? std::to_integer<unsigned>(given[given.size() - bytes_left]) : 0;
    for (int i = 7; i >= 0; --i) {
      const Hint hint = guide ? guide->Predict() : Hint();
      const uint32_t p = model.Predict(hint);
      bool bit = (next >> i & 1) != 0;
      if (writer) {
        writer->Bit(bit, p);
      } else {
        bit = reader->Bit(p);
      }
      model.Update(bit);
      if (guide) guide->Update(bit);
      byte = byte << 1 | (bit ? 1 : 0);
    }
    --bytes_left;
    if (reader) out.push_back(static_cast<std::byte>(byte));
    model.AddByte(writer ? given.first(given.size() - bytes_left)
                         : std::span<const std::byte>(out));
  }
};

BlockCoder::BlockCoder(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
BlockCoder::BlockCoder(BlockCoder&&) noexcept = default;
BlockCoder& BlockCoder::operator=(BlockCoder&&) noexcept = default;
BlockCoder::~BlockCoder() = default;

BlockCoder BlockCoder::Compress(const SharedWords& words, std::span<const std::byte> text,
                                bool fast) {
  const TokenStyle style = words.StyleOf(text);
  auto contents = std::make_unique<Contents>(words, style, fast, text.size());
  contents->given = text;
  contents->out.push_back(static_cast<std::byte>(style) | (fast ? kFast : std::byte{0}));
  contents->writer.emplace(contents->out);
  return BlockCoder(std::move(contents));
}

Result<BlockCoder> BlockCoder::Restore(const SharedWords& words, std::span<const std::byte> bytes,
                                       size_t length) {
  const std::byte first = bytes.empty() ? std::byte{0} : bytes[0];
  const auto style = static_cast<TokenStyle>(first & ~kFast);
  const bool fast = (first & kFast) != std::byte{0};
  if (bytes.empty() || (style != TokenStyle::kNone && words.Of(style) == nullptr)) {
    return Status::Refusal(KINGLET_CORRUPT, "compressed block", "style", "one that the model has",
                           bytes.empty() ? "none" : std::to_string(static_cast<int>(bytes[0])));
  }
  auto contents = std::make_unique<Contents>(words, style, fast, length);
  contents->reader.emplace(bytes.subspan(1));
  return BlockCoder(std::move(contents));
}

uint64_t BlockCoder::MemoryOf(const Model& model, size_t length) {
  return ByteModel::MemoryOf(length) + uint64_t{4} * model.vocabulary_size();
}

void BlockCoder::Run() {
  Contents& block = *contents_;
  for (size_t i = 0; i < kBytesOfRun && block.bytes_left > 0 && waiting().empty(); ++i) {
    block.CodeByte();
  }
  if (block.bytes_left == 0 && block.writer) {
    block.writer->Finish();
    block.writer.reset();
  }
}

bool BlockCoder::done() const { return contents_->bytes_left == 0; }

std::span<const uint32_t> BlockCoder::waiting() const {
  if (!contents_->guide) return {};
  return contents_->guide->waiting();
}

void BlockCoder::SetProbabilities(std::span<const float> probabilities) {
  contents_->guide->SetProbabilities(probabilities);
}

std::vector<std::byte> BlockCoder::Take() { return std::move(contents_->out); }

Status RunCoders(Session& session, std::span<BlockCoder> coders, const StopAsked& stop) {
  std::vector<float> probabilities(session.model().vocabulary_size());
  std::vector<uint32_t> lanes, asking, step_lanes, ids;
  for (uint32_t i = 0; i < coders.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(session.Reset(i));
    coders[i].Run();
    if (!coders[i].done()) lanes.push_back(i);
  }
  while (!lanes.empty()) {
    if (stop && stop()) return Status(KINGLET_CANCELLED, "compress: stopped by the caller");
    size_t most = 0;
    for (const uint32_t lane : lanes) most = std::max(most, coders[lane].waiting().size());
    for (size_t token = 0; token < most; ++token) {
      step_lanes.clear();
      ids.clear();
      for (const uint32_t lane : lanes) {
        if (token >= coders[lane].waiting().size()) continue;
        step_lanes.push_back(lane);
        ids.push_back(coders[lane].waiting()[token]);
      }
      KINGLET_RETURN_IF_ERROR(session.StepLanes(step_lanes, ids));
    }
    asking.clear();
    for (const uint32_t lane : lanes) {
      if (!coders[lane].waiting().empty()) asking.push_back(lane);
    }
    if (asking.size() > 1) KINGLET_RETURN_IF_ERROR(session.ComputeAllLanes(asking));
    for (const uint32_t lane : asking) {
      KINGLET_RETURN_IF_ERROR(session.Probabilities(std::span(probabilities), lane));
      coders[lane].SetProbabilities(probabilities);
    }
    for (const uint32_t lane : lanes) coders[lane].Run();
    std::erase_if(lanes, [&](uint32_t lane) { return coders[lane].done(); });
  }
  return Status();
}

}  // namespace kinglet::compress
