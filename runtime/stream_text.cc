#include "runtime/stream_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/special_tokens.h"

namespace kinglet {
namespace {

constexpr size_t kLongestCharacter = 4;  // bytes, in UTF-8

// The number of bytes at the end of the text that begin a character which later bytes may complete.
size_t UnfinishedBytes(std::string_view text) {
  for (size_t count = 1; count < kLongestCharacter && count <= text.size(); ++count) {
    const auto byte = static_cast<unsigned char>(text[text.size() - count]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;  // inside a character
    const size_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : kLongestCharacter;
    return length > count ? count : 0;
  }
  return 0;
}

// The length of the longest end of the text that is a proper prefix of `stop`.
size_t BeginningOf(std::string_view stop, std::string_view text) {
  size_t length = stop.empty() ? 0 : std::min(stop.size() - 1, text.size());
  while (!text.ends_with(stop.substr(0, length))) --length;
  return length;
}

}  // namespace

StreamText::StreamText(std::shared_ptr<const Model> model, std::string stop)
    : model_(std::move(model)),
      stop_(std::move(stop)),
      end_of_line_(SpecialTokensOf(*model_).end_of_line) {
  if (model_->text() != nullptr) decoder_.emplace(model_->text()->tokenizer());
}

std::string StreamText::Join(uint32_t id) {
  if (!decoder_) return {};
  if (id == end_of_line_) return decoder_->Finish() + '\n';
  return model_->text()->Decode(id, *decoder_);
}

void StreamText::Skip(uint32_t id) { Join(id); }

std::string StreamText::Release(const std::string& text, bool at_end) {
  held_ += text;
  size_t known = stop_.empty() ? std::string::npos : held_.find(stop_);
  stopped_ = known != std::string::npos;
  if (!stopped_) {
    const size_t kept = at_end ? 0 : std::max(BeginningOf(stop_, held_), UnfinishedBytes(held_));
    known = held_.size() - kept;
  }
  std::string released = held_.substr(0, known);
  held_.erase(0, known);
  return released;
}

std::string StreamText::Add(uint32_t id) { return Release(Join(id), false); }

std::string StreamText::Finish() {
  if (stopped_) return {};
  return Release(decoder_ ? decoder_->Finish() : std::string(), true);
}

}  // namespace kinglet
