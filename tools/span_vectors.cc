#include "tools/span_vectors.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "format/input_file.h"
#include "format/message_text.h"
#include "kernels/backend.h"
#include "runtime/session.h"
#include "runtime/text/model_text.h"
#include "tools/document_reader.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct Word {
  size_t begin, end;  // in the text
};

// The words with one space between them, one before a text that is read backward and one after a
// text that is read forward.
std::pair<std::string, std::vector<Word>> TextOf(std::string_view line, bool reads_backward) {
  std::string text;
  std::vector<Word> words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) {
      if (reads_backward) text += ' ';
      words.push_back({text.size(), text.size() + end - at});
      text += line.substr(at, end - at);
      if (!reads_backward) text += ' ';
    }
    at = end + 1;
  }
  return {std::move(text), std::move(words)};
}

// The hidden state that a session's last token left.
class HiddenState {
 public:
  // REQUIRES: both outlive the object.
  HiddenState(const Model& model, Session& session)
      : spec_(model.plan().buffer(model.plan().hidden)),
        slot_(model.layout()[model.plan().hidden]),
        is_double_(model.backend().real_bytes == sizeof(double)),
        values_(slot_.count) {
    const Node* const last = &model.plan().nodes[model.plan().context.end - 1];
    session.set_observer([this, last](const Node& node, std::span<const StreamFrame> frames) {
      if (&node == last) Read(frames.front());
    });
  }
  HiddenState(const HiddenState&) = delete;
  HiddenState& operator=(const HiddenState&) = delete;

  std::span<const double> values() const { return values_; }

 private:
  template <class T>
  void Copy(const StreamFrame& frame) {
    const double scale = spec_.quantiser ? double{spec_.quantiser->scale} : 1;
    const T* const stored = slot_.At<T>(frame);
    std::transform(stored, stored + slot_.count, values_.begin(),
                   [scale](T value) { return scale * static_cast<double>(value); });
  }
  void Read(const StreamFrame& frame) {
    switch (spec_.element) {
      case Element::kReal:
        return is_double_ ? Copy<double>(frame) : Copy<float>(frame);
      case Element::kCode16:
        return Copy<int16_t>(frame);
      case Element::kCode32:
        return Copy<int32_t>(frame);
      case Element::kCode9:  // hidden states are made neither of these rows nor of words
      case Element::kUint32:
        return;
    }
  }

  const BufferSpec& spec_;
  const Slot& slot_;
  const bool is_double_;
  std::vector<double> values_;
};

}  // namespace

Status ForEachSpan(const std::string& path, const std::shared_ptr<const Model>& model,
                   const SpanSink& sink) {
  const auto refuse = [](const char* expected, const char* found) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "embed", "--spans", expected, found);
  };
  const ModelText* const text = model->text();
  const std::optional<uint32_t> newline =
      text == nullptr ? std::nullopt : text->vocabulary().Find("\n");
  if (!newline || !text->splits_words() || text->tokenizer().size() > 0) {
    return refuse("a model of characters, a newline among them", "another");
  }
  if (model->device() != nullptr) return refuse("a backend of the processor", "one of a device");
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  const HiddenState hidden(*model, *session);
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines.Next());
    if (!line) return {};
    const auto [read, words] = TextOf(line->text, text->reads_backward());
    if (words.empty()) continue;
    const Result<TokenizedText> tokenized = text->Encode(read);
    if (!tokenized.ok()) {
      return InFile(lines.name() + ", " + Numbered("line", line->line_number), tokenized.status());
    }
    KINGLET_RETURN_IF_ERROR(session->Reset());
    KINGLET_RETURN_IF_ERROR(session->StepToken(*newline));
    std::vector<double> vectors(words.size() * hidden.values().size());
    const auto vector_of = [&](size_t word) {
      return std::span(vectors).subspan(word * hidden.values().size(), hidden.values().size());
    };
    size_t done = 0;  // words
    for (const TokenizedText::Token& token : tokenized->tokens) {
      KINGLET_RETURN_IF_ERROR(session->StepToken(token.id));
      if (done == words.size()) break;
      const bool backward = text->reads_backward();
      const size_t word = backward ? words.size() - 1 - done : done;
      // Whether the token is the space after the word, in reading order.
      if (backward ? words[word].begin != token.end : words[word].end != token.begin) continue;
      std::copy(hidden.values().begin(), hidden.values().end(), vector_of(word).begin());
      ++done;
    }
    for (size_t i = 0; i < words.size(); ++i) {
      const auto& [begin, end] = words[i];
      KINGLET_RETURN_IF_ERROR(
          sink(line->line_number, std::string_view(read).substr(begin, end - begin), vector_of(i)));
    }
  }
}

}  // namespace kinglet
