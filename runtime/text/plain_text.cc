#include "runtime/text/plain_text.h"

#include <algorithm>

namespace kinglet {

std::string_view PlainLine(std::string_view line) {
  while (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view PlainPieces::Add(std::string_view piece) {
  std::string joined;
  if (!kept_.empty()) {
    joined = std::exchange(kept_, std::string()).append(piece);
    piece = joined;
  }
  made_.clear();
  while (!piece.empty()) {
    if (line_begins_) {
      while (piece.starts_with(kByteOrderMark)) piece.remove_prefix(kByteOrderMark.size());
      if (kByteOrderMark.starts_with(piece)) {
        kept_ = piece;
        break;
      }
      line_begins_ = false;
    }
    const size_t end = piece.find('\n');
    const std::string_view line = piece.substr(0, end);
    const size_t text = line.find_last_not_of('\r') + 1;  // 0 if the line has no other byte
    made_ += line.substr(0, text);
    if (end == piece.npos) {
      kept_ = line.substr(text);
      break;
    }
    made_ += '\n';
    line_begins_ = true;
    piece.remove_prefix(end + 1);
  }
  return made_;
}

std::string_view PlainPieces::Finish() {
  made_ = kept_.starts_with('\r') ? std::string() : kept_;
  kept_.clear();
  return made_;
}

PlainText::PlainText(std::string_view original) {
  size_t excluded = 0;
  const auto leave_out = [&](size_t bytes) {
    if (bytes == 0) return;
    excluded += bytes;
    excluded_.emplace_back(text_.size(), excluded);
  };
  for (size_t at = 0; at < original.size();) {
    const size_t end = std::min(original.find('\n', at), original.size());
    const std::string_view line = original.substr(at, end - at);
    const std::string_view plain = PlainLine(line);
    const auto before = static_cast<size_t>(plain.data() - line.data());
    leave_out(before);
    text_ += plain;
    if (end < original.size()) {
      leave_out(line.size() - before - plain.size());
      text_ += '\n';
    }
    at = end + 1;
  }
}

size_t PlainText::Begin(size_t offset) const {
  const auto past =
      std::upper_bound(excluded_.begin(), excluded_.end(), offset,
                       [](size_t wanted, const auto& entry) { return wanted < entry.first; });
  return offset + (past == excluded_.begin() ? 0 : std::prev(past)->second);
}

}  // namespace kinglet
