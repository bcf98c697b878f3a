#include "converters/texts/pickled_vocabulary.h"

#include <cstddef>
#include <memory>
#include <span>

#include "converters/sources/checkpoint.h"
#include "converters/sources/pickle.h"

namespace kinglet {
namespace {

// An object's attributes, or a dict as it is.
const PickleNode& AttributesOf(const PickleNode& node) {
  const auto* object = node.As<PickleObject>();
  return object != nullptr && object->state != nullptr ? *object->state : node;
}

Result<std::vector<std::string>> WordsIn(const std::string& path, const PickleNode& root) {
  const auto refuse = [&path](const std::string& where, const std::string& expected,
                              const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, where, expected, found);
  };
  const PickleNode* attributes = &AttributesOf(root);
  if (const NodeRef inside = attributes->Find("vocab"); inside != nullptr) {
    attributes = &AttributesOf(*inside);
  }
  const NodeRef node = attributes->Find("idx2sym");
  const auto* list = node == nullptr ? nullptr : node->As<PickleList>();
  if (list == nullptr) {
    return refuse("vocabulary", "the attributes of a Vocab object with a list as 'idx2sym'",
                  node == nullptr ? attributes->Describe() + " without it" : node->Describe());
  }
  std::vector<std::string> words;
  words.reserve(list->items.size());
  for (const PickleNode* item : list->items) {
    const auto* word = item->As<std::string>();
    if (word == nullptr || word->empty()) {
      return refuse("entry " + std::to_string(words.size()) + " of idx2sym", "a word",
                    word == nullptr ? item->Describe() : "an empty one");
    }
    words.push_back(*word);
  }
  if (words.empty()) return refuse("idx2sym", "at least one word", "none");
  return words;
}

}  // namespace

bool LooksPickled(const InputFile& file) {
  if (file.path().ends_with(".pkl") || Checkpoint::Recognises(file)) return true;
  constexpr std::byte kProtocol{
      0x80};  // opcode PROTO, which pickles of protocol 2 and up start with
  std::byte first{};
  return file.size() > 0 && file.ReadAt(0, {&first, 1}).ok() && first == kProtocol;
}

Result<std::vector<std::string>> ReadPickledVocabulary(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(InputFile opened, InputFile::Open(path));
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  if (Checkpoint::Recognises(*file)) {
    KINGLET_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(file));
    return WordsIn(path, checkpoint->root());
  }
  const PickleSource source = {file->size(), [&file](uint64_t offset, std::span<std::byte> out) {
                                 return file->ReadAt(offset, out);
                               }};
  const Result<PickleGraph> graph = ReadPickle(source, 0);
  if (!graph.ok()) return InFile(path, graph.status());
  return WordsIn(path, *graph->root);
}

}  // namespace kinglet
