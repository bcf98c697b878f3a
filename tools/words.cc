#include "tools/words.h"

#include <utility>

#include "converters/texts/token_file.h"
#include "tools/interrupt.h"

namespace kinglet {
Status RequireWords(const std::string& input_name, const ModelText* text) {
  if (text != nullptr) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, input_name, "words", "a model with a vocabulary",
                         "a model that has ids only (convert it with --vocab)");
}

Status RequireForward(const std::string& input_name, const char* command, const ModelText* text) {
  if (text == nullptr || !text->reads_backward()) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, input_name, command, "a model that reads forward",
                         "one that reads a text from its end (`score` answers)");
}

Result<uint32_t> InputOf(const Model& model, uint32_t id, std::string_view typed) {
  if (!model.spells() || typed.empty()) return id;
  return model.Spell(typed);
}

Result<std::vector<uint32_t>> InputsOf(const Model& model, const TokenSequence& sequence) {
  std::vector<uint32_t> inputs = sequence.ids;
  for (size_t i = 0; i < inputs.size() && model.spells(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(inputs[i], InputOf(model, inputs[i], sequence.typed.At(i)));
  }
  return inputs;
}

Status CheckTokenId(uint32_t id, uint32_t vocabulary_size, const std::string& input_name,
                    const std::string& where) {
  if (id < vocabulary_size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, input_name, where,
                         "a token id below " + std::to_string(vocabulary_size), std::to_string(id));
}

Result<TokenSequence> ReadIdSequence(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ReadIds(path));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary_size) continue;
    return CheckTokenId(ids[i], vocabulary_size, path, "position " + std::to_string(i));
  }
  TokenSequence sequence;
  sequence.ids = std::move(ids);
  return sequence;
}

Result<TextInput> OpenText(const std::string& name, InputForm form) {
  return TextInput::Open(name, form, WaitForInput);
}

Status ForEachTextPiece(const std::string& path, const ModelText* text,
                        const std::function<Status(const TokenSequence&)>& sink) {
  KINGLET_RETURN_IF_ERROR(RequireWords(path, text));
  KINGLET_ASSIGN_OR_RETURN(TextInput input, OpenText(path));
  TextReader reader(*text, input.name(), [&sink](TokenSequence& tokens) {
    const Status status = sink(tokens);
    tokens = {};
    return status;
  });
  while (true) {
    TokenSequence tokens;
    KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input.Next());
    KINGLET_RETURN_IF_ERROR(piece.empty() ? reader.Finish(tokens) : reader.Add(piece, tokens));
    KINGLET_RETURN_IF_ERROR(sink(tokens));
    if (piece.empty()) return {};
  }
}

Result<TokenSequence> ReadTextSequence(const std::string& path, const ModelText* text) {
  KINGLET_RETURN_IF_ERROR(RequireWords(path, text));
  KINGLET_ASSIGN_OR_RETURN(TextInput input, OpenText(path));
  TextReader reader(*text, input.name());
  TokenSequence sequence;
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input.Next());
    if (piece.empty()) break;
    KINGLET_RETURN_IF_ERROR(reader.Add(piece, sequence));
  }
  KINGLET_RETURN_IF_ERROR(reader.Finish(sequence));
  return sequence;
}

}  // namespace kinglet
