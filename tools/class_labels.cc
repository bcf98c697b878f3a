#include "tools/class_labels.h"

#include <charconv>
#include <string_view>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/word_splitter.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "tools/json_lines.h"

namespace kinglet {

Result<ClassLabels> ClassLabels::Read(const std::string& path, uint32_t classes) {
  ClassLabels labels;
  labels.path_ = path;
  if (path.empty()) return labels;
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  for (const std::string_view line : LinesOf(text)) {
    uint64_t label = 0;
    const char* const end = line.data() + line.size();
    const auto parsed = std::from_chars(line.data(), end, label);
    if (parsed.ec != std::errc() || parsed.ptr != end || label >= classes) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, path,
                             Numbered("line", labels.labels_.size() + 1),
                             "a class, 0 to " + std::to_string(classes - 1), Quoted(line));
    }
    labels.labels_.push_back(label);
  }
  return labels;
}

Status ClassLabels::WrongCount(const std::string& texts) const {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "embed", path_, "a label for each text",
                         std::to_string(labels_.size()) + " labels, and " + texts + " texts");
}

Status ClassLabels::Add(uint64_t found) {
  if (path_.empty()) return Status();
  if (texts_ == labels_.size()) return WrongCount("more");
  right_ += labels_[texts_++] == found ? 1 : 0;
  return Status();
}

Status ClassLabels::Finish(bool json, Console& console) const {
  if (path_.empty()) return Status();
  if (texts_ < labels_.size() || texts_ == 0) return WrongCount(std::to_string(texts_));
  const double accuracy = static_cast<double>(right_) / static_cast<double>(texts_);
  if (!json) {
    PrintNote("accuracy " + ShortNumber(accuracy) + ", " + Grouped(right_) + " of " +
              Grouped(texts_) + " texts");
    return Status();
  }
  JsonLine line;
  line.Key("texts").Integer(texts_).Key("right").Integer(right_);
  line.Key("accuracy").Number(accuracy);
  console.out.Write(line.Finish());
  return Status();
}

}  // namespace kinglet
