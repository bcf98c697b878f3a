// Token ids and running text from files.
#ifndef KINGLET_CONVERTERS_TEXTS_TOKEN_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_TOKEN_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// What stands for the end of a line, as a word of the text. In a vocabulary that has no such word
// it is kSentenceEnd, if that is one: fairseq's dictionaries call it so.
inline constexpr std::string_view kEndOfLine = "<eos>";
inline constexpr std::string_view kSentenceEnd = "</s>";

// Token ids from a file or a pipe: decimal numbers apart from each other by ASCII white space, or a
// .npy array of integers (recognised by content). Whether an id is in a vocabulary is the caller's
// question. No ids at all is a valid file. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
// KINGLET_OUT_OF_MEMORY; KINGLET_INVALID_ARGUMENT naming the byte offset of what is no id.
Result<std::vector<uint32_t>> ReadIds(const std::string& path);

// The ids of a text; `where` stands in front of the byte in refusals.
Result<std::vector<uint32_t>> ParseIds(std::string_view text, const std::string& where);

// The same where each line is a list of its own: one for each line, also for a blank one; an empty
// last line behind the last newline is none. KINGLET_INVALID_ARGUMENT names line and byte.
Result<std::vector<std::vector<uint32_t>>> ReadIdLines(const std::string& path);

// The words of a text file: each line split at ASCII white space as Python's str.split does, then
// "<eos>". A blank line gives a lone "<eos>"; a last line without newline counts, an empty one
// behind the last newline does not. Lines end with '\n' ('\r' is white space). `word` is valid
// during the call; a failure it returns ends the reading. The file is read in pieces: memory is
// about the longest word.
Status ForEachWord(const std::string& path, const std::function<Status(std::string_view)>& word);
// The same as a list.
Result<std::vector<std::string>> ReadText(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_TOKEN_FILE_H_
