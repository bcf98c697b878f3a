// Compares text prefixes of models of pieces with brute force on one model and text: after each of
// its last tokens, the beginnings of the text that does follow. Brute force runs every sequence of
// tokens that begins the prefix, takes all their probabilities, and joins their texts as the
// decoder does.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/texts/token_file.h"
#include "runtime/stream_text.h"
#include "runtime/text_prefix.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct Options {
  std::string model, ids;
  uint32_t states = 1000;
};

class Check {
 public:
  explicit Check(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  Status Run(const std::vector<uint32_t>& ids, uint32_t states) {
    KINGLET_ASSIGN_OR_RETURN(session_, Session::Create(model_));
    KINGLET_ASSIGN_OR_RETURN(forks_, Session::Create(model_));
    KINGLET_ASSIGN_OR_RETURN(TextPrefix texts, TextPrefix::Create(*model_));
    const size_t first = ids.size() > states + kAhead ? ids.size() - states - kAhead : 0;
    for (size_t i = 0; i + kAhead < ids.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(session_->StepToken(ids[i]));
      if (i < first) continue;
      // The part of the text that decides what is dropped at the beginning of a line.
      before_.assign(ids.begin() + static_cast<std::ptrdiff_t>(i > kBefore ? i - kBefore : 0),
                     ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      const std::string ahead = TextOf({ids.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                        ids.begin() + static_cast<std::ptrdiff_t>(i) + 1 + kAhead});
      KINGLET_RETURN_IF_ERROR(Ask(texts, ahead));
    }
    return Status();
  }
  bool Print() const {
    std::printf(
        "%llu prefixes: %llu differ; %.1f steps on average, %llu at most; %llu not asked, of "
        "more than %llu\n",
        Number(asked_), Number(differ_),
        static_cast<double>(steps_) / static_cast<double>(std::max<uint64_t>(asked_, 1)),
        Number(most_steps_), Number(too_many_), Number(kMostSteps));
    std::printf(
        "five best words of %llu prefixes: a beam of 8 has %.2f %% of those of 64, the best "
        "in %.2f %%\n",
        Number(beams_), Percent(found_, wanted_), Percent(same_best_, beams_));
    return differ_ == 0 && asked_ > 0;
  }

 private:
  static constexpr size_t kAhead = 4, kLongestPrefix = 3, kBefore = 3;
  static constexpr uint64_t kMostSteps = 200;

  static unsigned long long Number(uint64_t number) { return number; }
  static double Percent(uint64_t part, uint64_t all) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(all, 1));
  }

  std::string TextOf(const std::vector<uint32_t>& ids) const {
    StreamText text(model_, "");
    for (const uint32_t id : before_) text.Skip(id);
    std::string all;
    for (const uint32_t id : ids) all += text.Add(id);
    return all + text.Finish();
  }

  Status Ask(TextPrefix& texts, const std::string& ahead) {
    for (size_t length = 1; length <= std::min(kLongestPrefix, ahead.size()); ++length) {
      const std::string prefix = ahead.substr(0, length);
      const auto found = texts.Probability(*session_, 0, prefix, kMostSteps);
      if (found.status().code() == KINGLET_TOO_MANY_STEPS) {
        ++too_many_;
        continue;
      }
      KINGLET_RETURN_IF_ERROR(found.status());
      steps_ += texts.steps();
      most_steps_ = std::max(most_steps_, texts.steps());
      KINGLET_ASSIGN_OR_RETURN(const State state, session_->Save());
      KINGLET_ASSIGN_OR_RETURN(const double expected, BruteForce(state, prefix, {}));
      differ_ += *found == expected ? 0 : 1;
      ++asked_;
    }
    KINGLET_ASSIGN_OR_RETURN(const auto narrow, texts.Best(*session_, 0, ahead.substr(0, 2), {}));
    KINGLET_ASSIGN_OR_RETURN(const auto wide,
                             texts.Best(*session_, 0, ahead.substr(0, 2), {5, 64, 100000}));
    ++beams_;
    wanted_ += wide.size();
    for (const TextCompletion& word : wide) {
      found_ += std::any_of(narrow.begin(), narrow.end(),
                            [&](const TextCompletion& other) { return other.text == word.text; });
    }
    same_best_ += !wide.empty() && !narrow.empty() && wide[0].text == narrow[0].text;
    return Status();
  }

  Result<double> BruteForce(const State& state, const std::string& prefix,
                            const std::vector<uint32_t>& sequence) {
    KINGLET_RETURN_IF_ERROR(forks_->Restore(state));
    for (const uint32_t id : sequence) KINGLET_RETURN_IF_ERROR(forks_->StepToken(id));
    std::vector<double> all(model_->vocabulary_size());
    KINGLET_RETURN_IF_ERROR(forks_->Probabilities(std::span<double>(all)));
    // First the tokens that reach the prefix's end, then the sequences to continue.
    double sum = 0;
    std::vector<std::pair<uint32_t, std::vector<uint32_t>>> further;
    const std::string before = TextOf(sequence);
    for (uint32_t id = 0; id < all.size(); ++id) {
      std::vector<uint32_t> longer = sequence;
      longer.push_back(id);
      const std::string text = TextOf(longer);
      // Skips tokens that spell nothing. The unknown piece may be the end of a line, too.
      if (text == before || (IsUnknown(id) && !text.ends_with('\n'))) continue;
      if (text.starts_with(prefix)) {
        sum += all[id];
      } else if (prefix.starts_with(text)) {
        further.emplace_back(id, longer);
      }
    }
    for (const auto& [id, longer] : further) {
      KINGLET_ASSIGN_OR_RETURN(const double rest, BruteForce(state, prefix, longer));
      sum += all[id] * rest;
    }
    return sum;
  }
  bool IsUnknown(uint32_t id) const {
    return model_->text() != nullptr && model_->text()->unknown_id() == id;
  }

  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_, forks_;
  std::vector<uint32_t> before_;  // the last tokens of the stream
  uint64_t asked_ = 0, differ_ = 0, too_many_ = 0, steps_ = 0, most_steps_ = 0;
  uint64_t beams_ = 0, wanted_ = 0, found_ = 0, same_best_ = 0;
};

int Main(int argc, char** argv) {
  Options options;
  ArgumentParser program("Compare text prefixes with brute force", "text_prefixes");
  program.Add("M.kgl", options.model, "model file with its tokenizer").Required().Placeholder("");
  program.Add("IDS", options.ids, "file of token ids").Required().Placeholder("");
  program.Add("--states", options.states, "number of last tokens after which prefixes are queried")
      .ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const auto run = [&]() -> Result<bool> {
    KINGLET_ASSIGN_OR_RETURN(auto model, Model::Open(options.model, ModelOptions()));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, ReadIds(options.ids));
    Check check(std::move(model));
    KINGLET_RETURN_IF_ERROR(check.Run(ids, options.states));
    return check.Print();
  };
  const Result<bool> all_equal = run();
  if (!all_equal.ok())
    std::fprintf(stderr, "text_prefixes: %s\n", all_equal.status().message().c_str());
  return all_equal.ok() && *all_equal ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
