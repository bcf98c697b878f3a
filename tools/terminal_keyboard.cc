#include "tools/terminal_keyboard.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "format/utf8.h"
#include "runtime/special_tokens.h"
#include "runtime/text/model_text.h"
#include "tools/interrupt.h"
#include "tools/raw_terminal.h"

namespace kinglet {
namespace {

constexpr char kEscape = '\x1B', kBackspace = '\x7F', kOtherBackspace = '\b', kEnd = '\x04';
// Of touches on keys that are known: the next key costs 5.6 nats.
constexpr double kDeviation = 0.3;
constexpr size_t kMostReads = 64;
constexpr auto kPatience = std::chrono::milliseconds(100);

bool IsLetterKey(const std::string& key, bool has_word) {
  const typing::Letters letters = typing::LowerLetters(key);
  return letters.size() == 1 &&
         (typing::IsWordLetter(letters[0]) || (has_word && typing::IsOptional(letters[0])));
}

void RemoveLastCharacter(std::string& text) {
  while (!text.empty()) {
    const bool is_inside = ContinuesCharacter(text.back());
    text.pop_back();
    if (!is_inside) return;
  }
}

}  // namespace

LineKeyboard::LineKeyboard(Session& session, typing::TypingDecoder& decoder,
                           const KeyboardLayout& layout)
    : session_(session), decoder_(decoder), layout_(layout) {
  lane_.Use(session, 0);
}

bool LineKeyboard::IsSentenceStart() const {
  return before_.empty() || before_ == "." || before_ == "!" || before_ == "?";
}

typing::Capitals LineKeyboard::CapitalsNow() const {
  using typing::Capitals;
  if (word_.empty()) return IsSentenceStart() ? Capitals::kFirst : Capitals::kAsWritten;
  const std::string lower = typing::TextOf(typing::LowerLetters(word_));
  const size_t first = std::max<size_t>(1, CharacterLength(word_));
  if (word_.compare(0, first, lower, 0, first) == 0) return Capitals::kAsWritten;
  const bool is_all = word_.size() > first && typing::WithCapitals(word_, Capitals::kAll) == word_;
  return is_all ? Capitals::kAll : Capitals::kFirst;
}

Status LineKeyboard::Find() {
  typing::TypingQuestion question;
  for (const char32_t letter : typing::LowerLetters(word_)) {
    if (question.touches.count() == typing::kMostTouches) break;
    if (const auto place = layout_.PlaceOf(letter)) {
      question.touches.Add(layout_.At(*place, kDeviation));
    } else {
      const typing::TouchedCharacter only[] = {{letter, 0}};
      question.touches.Add(only);
    }
  }
  question.before = before_;
  question.capitals = CapitalsNow();
  question.count = kOffered;
  KINGLET_RETURN_IF_ERROR(decoder_.Prepare(lane_));  // the network's time is not the search's
  question.deadline = std::chrono::steady_clock::now() + kPatience;
  KINGLET_ASSIGN_OR_RETURN(auto answer, decoder_.Find(lane_, question));
  offered_ = std::move(answer.candidates);
  return {};
}

Status LineKeyboard::ReadPart(const std::string& part, const std::string& word) {
  KINGLET_ASSIGN_OR_RETURN(State state, session_.Save());
  reads_.push_back({std::move(state), done_, part, word, before_});
  if (reads_.size() > kMostReads) reads_.pop_front();
  KINGLET_ASSIGN_OR_RETURN(const TokenizedText tokenized,
                           decoder_.words().model().text()->Encode(part));
  for (const auto& token : tokenized.tokens) KINGLET_RETURN_IF_ERROR(session_.StepToken(token.id));
  done_ += part;
  before_ = part;
  return {};
}

Status LineKeyboard::Learn() {
  if (!use_) return {};
  const Use use = *std::exchange(use_, std::nullopt);
  return decoder_.user().Learn("type", use.before, use.word);
}

Status LineKeyboard::ReadWord() {
  if (word_.empty()) return {};
  KINGLET_RETURN_IF_ERROR(Learn());
  const std::string word = std::exchange(word_, "");
  if (typing::UserWords::CanLearn(word)) {
    // The capital of a sentence's first word is not the word's, unless only that form is known.
    const std::string lower = typing::TextOf(typing::LowerLetters(word));
    const bool is_raised = IsSentenceStart() &&
                           typing::WithCapitals(lower, typing::Capitals::kFirst) == word &&
                           (decoder_.words().EntryOf(lower) || !decoder_.words().EntryOf(word));
    use_ = {before_, is_raised ? lower : word};
  }
  return ReadPart(word, word);
}

Status LineKeyboard::Take(size_t place) {
  if (offered_.empty()) KINGLET_RETURN_IF_ERROR(Find());
  if (place >= offered_.size()) return {};
  const std::string typed = std::exchange(word_, offered_[place].text);
  offered_.clear();
  KINGLET_RETURN_IF_ERROR(ReadWord());
  reads_.back().word = typed;  // Backspace gives the letters back
  done_ += ' ';
  return {};
}

Status LineKeyboard::Remove() {
  if (!word_.empty()) {
    RemoveLastCharacter(word_);
    return {};
  }
  const size_t end = reads_.empty() ? 0 : reads_.back().done.size() + reads_.back().part.size();
  const bool has_space = done_.size() > end && done_.back() == ' ';
  if (has_space) done_.pop_back();
  if (reads_.empty() || done_.size() > end) return {};
  Read read = std::move(reads_.back());
  reads_.pop_back();
  KINGLET_RETURN_IF_ERROR(session_.Restore(read.state));
  done_ = std::move(read.done);
  word_ = std::move(read.word);
  before_ = std::move(read.before);
  use_.reset();
  if (!has_space) RemoveLastCharacter(word_);
  return {};
}

Status LineKeyboard::Press(const std::string& key) {
  if (key.empty()) return {};
  if (key == "\t") return Take(0);
  if (key[0] == kEscape) {
    const bool is_place = key.size() == 2 && key[1] >= '1' && key[1] <= '3';
    return is_place ? Take(static_cast<size_t>(key[1] - '1')) : Status();
  }
  offered_.clear();  // words for another line
  if (key[0] == kBackspace || key[0] == kOtherBackspace) return Remove();
  if (IsLetterKey(key, !word_.empty())) {
    word_ += key;
    return {};
  }
  if (static_cast<unsigned char>(key[0]) < ' ') return {};
  KINGLET_RETURN_IF_ERROR(ReadWord());
  if (key == " ") {
    done_ += key;
    return {};
  }
  // After a word that was taken a mark replaces its space.
  constexpr std::string_view kClosing = ".,;:!?)";
  if (kClosing.find(key) != std::string_view::npos && done_.ends_with(' ')) done_.pop_back();
  return ReadPart(key, "");
}

Result<std::string> LineKeyboard::End() {
  KINGLET_RETURN_IF_ERROR(ReadWord());
  KINGLET_RETURN_IF_ERROR(Learn());
  if (const auto end = SpecialTokensOf(decoder_.words().model()).end_of_line) {
    KINGLET_RETURN_IF_ERROR(session_.StepToken(*end));
  }
  reads_.clear();
  before_.clear();
  offered_.clear();
  std::string line = std::exchange(done_, "");
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

Status TypeOnTerminal(LineKeyboard& keyboard, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(RawTerminal terminal, RawTerminal::Open());
  const auto show = [&]() -> Status {
    if (InputIsWaiting()) return {};  // words that change at once
    KINGLET_RETURN_IF_ERROR(keyboard.Find());
    const char* const keys[] = {"Tab ", "   Alt-2 ", "   Alt-3 "};
    std::string below;
    for (size_t i = 0; i < keyboard.offered().size(); ++i) {
      below += keys[i] + keyboard.offered()[i].text;
    }
    RawTerminal::Draw(keyboard.line(), below);
    return {};
  };
  const auto finish = [&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const std::string line, keyboard.End());
    RawTerminal::Finish(line);
    if (console.out_is_terminal) return {};
    console.out.Write(line + '\n');
    return console.out.Flush();
  };
  while (true) {
    KINGLET_RETURN_IF_ERROR(show());
    auto key = terminal.Key();
    if (!key.ok()) {
      RawTerminal::Finish(keyboard.line());
      return key.status();
    }
    const bool is_end = !*key || **key == std::string(1, kEnd);
    if (is_end && !keyboard.line().empty()) return finish();
    if (is_end) {
      RawTerminal::Finish("");
      return {};
    }
    if (**key == "\n" || **key == "\r") {
      KINGLET_RETURN_IF_ERROR(finish());
    } else {
      KINGLET_RETURN_IF_ERROR(keyboard.Press(**key));
    }
  }
}

}  // namespace kinglet
