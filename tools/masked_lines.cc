#include "tools/masked_lines.h"

#include <string_view>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/masked_file.h"
#include "format/input_file.h"
#include "runtime/text/model_text.h"
#include "runtime/text/plain_text.h"
#include "tools/run_options.h"
#include "tools/text_lines.h"

namespace kinglet {
namespace {

Status InLine(const std::string& input_name, uint64_t number, const Status& status) {
  return status.ok() ? status : InFile(input_name + ", line " + std::to_string(number), status);
}

Status ForEachLineOfIds(const MaskedInput& input, const MaskedLineSink& sink) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<MaskedText> texts,
                           ReadMaskedIds(input.ids, input.segments));
  for (size_t i = 0; i < texts.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(InLine(input.ids, i + 1, sink(i + 1, texts[i])));
  }
  return {};
}

}  // namespace

void AddMaskedInput(Arguments& arguments, MaskedInput& input) {
  arguments
      .Add("--text", input.text, "text, one a line, A ||| B for a pair (default: standard input)")
      .Placeholder(kFileOrStandardInput);
  arguments.Add("--ids", input.ids, "token ids, one text a line, [CLS] and [SEP] in it")
      .Placeholder(kFileOrStandardInput);
  arguments.Add("--segments", input.segments, "the segment number of each id (default: 0 for all)")
      .Placeholder(kFileOrStandardInput);
}

Status CheckMaskedInput(const MaskedInput& input, const std::string& command) {
  if (!input.ids.empty() && !input.text.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", command,
                           "--ids FILE, --text FILE or standard input", "both files");
  }
  if (input.segments.empty() || !input.ids.empty()) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", command, "--segments with --ids FILE",
                         "--segments alone");
}

Status ForEachMaskedLine(const MaskedInput& input, const Model& model, const MaskedLineSink& sink) {
  if (!input.ids.empty()) return ForEachLineOfIds(input, sink);
  const ModelText* const text = model.text();
  if (text == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "text", "model",
                           "one with a tokenizer (convert --tokenizer vocab.txt), or --ids FILE",
                           "another");
  }
  const bool standard_input = input.text.empty() || input.text == "-";
  const std::string input_name = standard_input ? std::string(kStandardInput) : input.text;
  uint64_t number = 0;
  const auto read = [&](std::string_view line) -> Status {
    number += 1;
    line = PlainLine(line);
    if (line.empty()) return sink(number, {});
    Result<TokenizedText> tokenized = text->Encode(line);
    if (!tokenized.ok()) return InLine(input_name, number, tokenized.status());
    return InLine(input_name, number, sink(number, MaskedTextOf(*tokenized)));
  };
  if (standard_input) {
    return ForEachInputLine([&](std::string_view line, bool) { return read(line); });
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string content, ReadWholeText(input.text));
  for (const std::string_view line : LinesOf(content)) KINGLET_RETURN_IF_ERROR(read(line));
  return {};
}

}  // namespace kinglet
