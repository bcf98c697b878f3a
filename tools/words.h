// Token ids from text files and files of ids, or from standard input as it is typed.
#ifndef KINGLET_TOOLS_WORDS_H_
#define KINGLET_TOOLS_WORDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/text/model_text.h"

namespace kinglet {

// KINGLET_UNSUPPORTED, naming `input_name`, if `text` is null: a model that has ids only cannot
// read text.
Status RequireWords(const std::string& input_name, const ModelText* text);

// KINGLET_UNSUPPORTED, naming `input_name`, if `text`, which may be null, is that of a model that
// reads backward. `command` answers what follows a text.
Status RequireForward(const std::string& input_name, const char* command, const ModelText* text);

// Opens a text; waiting for its bytes ends with KINGLET_CANCELLED after Ctrl-C (tools/interrupt.h).
// Errors: those of TextInput.
Result<TextInput> OpenText(const std::string& name, InputForm form = InputForm::kText);

// Ids from a file of numbers (converters/texts/token_file.h), each checked to be below
// `vocabulary_size`.
Result<TokenSequence> ReadIdSequence(const std::string& path, uint32_t vocabulary_size);
// Calls `sink` with the ids of a text file, piece by piece, each in a sequence of its own that has
// the piece's size. Otherwise as ReadTextSequence.
Status ForEachTextPiece(const std::string& path, const ModelText* text,
                        const std::function<Status(const TokenSequence&)>& sink);
// Ids of a text file; "-" is standard input. Lines are tokenized as `text` specifies (TextReader).
// Refuses a null `text`: a model that has ids only cannot read text.
Result<TokenSequence> ReadTextSequence(const std::string& path, const ModelText* text);

// The number by which a model reads a token of a text: its id or, where it is the unknown word and
// the model spells, that of the word as it was `typed` (Model::Spell). Errors: those of Spell.
Result<uint32_t> InputOf(const Model& model, uint32_t id, std::string_view typed);
// InputOf for each token of a sequence.
Result<std::vector<uint32_t>> InputsOf(const Model& model, const TokenSequence& sequence);

// KINGLET_ID_OUT_OF_RANGE unless id < vocabulary_size. `where`: "position 3".
Status CheckTokenId(uint32_t id, uint32_t vocabulary_size, const std::string& input_name,
                    const std::string& where);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_WORDS_H_
