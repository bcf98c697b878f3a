// Recognises the meaning of a list of words: words alone, or words with a number, in the forms that
// programs write. A form is recognised only if all lines have it and no other form fits.
#ifndef KINGLET_CONVERTERS_TEXTS_WORD_LIST_H_
#define KINGLET_CONVERTERS_TEXTS_WORD_LIST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct WordList {
  // The number in a line next to the word.
  enum class Form : uint8_t { kWords, kIds, kCounts, kScores };
  Form form = Form::kWords;
  std::vector<std::string> words;  // in id order: by the ids of kIds, else by line
  std::vector<std::string> notes;  // for the user: what was dropped
};

// Reads one of
//   word                     without a blank (space or tab); or a blank alone
//   "word"                   all in quotes, as in CSV
//   word id, id word         separated by blanks or a comma; ids 0 to n - 1 in any order
//   word count, word score   likewise; counts that fall or repeat, scores with a sign or a point
// Carriage returns at the ends of lines are dropped, a blank that ends every line, and empty lines
// at the end. Errors:
// KINGLET_INVALID_CHECKPOINT naming `path` and the line, for a line of another form, numbers that
// are neither ids nor counts, an empty line, and text that is not UTF-8.
Result<WordList> ReadWordList(const std::string& path, std::string_view text);

// The words of lines "word id" in the order of the ids 0 to n - 1, for files that are known to
// contain such lines. Returns nullopt if the text has other lines.
std::optional<std::vector<std::string>> WordsByIds(std::string_view text);

// The words in the order of their ids. Returns nullopt unless the ids are 0 to n - 1, each once.
std::optional<std::vector<std::string>> InIdOrder(std::span<const std::string> words,
                                                  std::span<const uint64_t> ids);

// Omits symbols of decoding graphs, "#0", "#1", .., that end a list of more than `most` words.
// Returns their number.
size_t DropDisambiguation(uint64_t most, std::vector<std::string>& words);

// Reads a fairseq dictionary as fairseq does: lines "word count", where the count follows the last
// space, perhaps with " #fairseq:overwrite". Ids 0 to 3 are <s> <pad> </s> <unk>. With the flag a
// word gets another id, which texts use; the word of the old id is then named "word (id 4)", which
// no text contains. For </s> and <unk>, the ids of ends of lines and of unknown words stay the
// same, and the new id is named "word (id 4)", with a note. Errors: KINGLET_INVALID_CHECKPOINT,
// naming the line.
Result<WordList> ReadFairseqList(const std::string& path, std::string_view text);

// Whether a line has the flag, or all lines have fairseq's form.
bool HasFairseqFlag(std::string_view text);
bool LooksLikeFairseqList(std::string_view text);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_WORD_LIST_H_
