#include "tools/report/passage.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/special_tokens.h"
#include "tools/report/html.h"

namespace kinglet {
namespace {

// Losses in nats where the next darker colour begins; each colour has a class k0, k1, ...
constexpr std::array<double, 6> kThresholds = {0.5, 1.5, 3, 4.5, 6.5, 9};

size_t ColourOf(double loss) {
  return static_cast<size_t>(std::upper_bound(kThresholds.begin(), kThresholds.end(), loss) -
                             kThresholds.begin());
}

class PassageView {
 public:
  explicit PassageView(const ModelReport& report)
      : report_(report),
        vocabulary_(report.model->vocabulary()),
        end_of_line_(SpecialTokensOf(*report.model).end_of_line) {}

  std::string Words() const {
    std::string html = "<p class=\"passage\">";
    for (const PassageWord& word : report_.text.passage) {
      html += "<span class=\"w k" + std::to_string(ColourOf(-word.log_probability)) +
              (word.typed.empty() ? "" : " u") + "\" tabindex=\"-1\">" + Shown(word) +
              "<span class=\"h\">" + Facts(word) + "</span></span> ";
      if (word.id == end_of_line_) html += "<br>\n";
    }
    return html + "</p>\n";
  }

  std::string Table() const {
    HtmlTable table("The words of the passage",
                    {"word", "position", "log p", "rank", "best five", "the cache"});
    for (const PassageWord& word : report_.text.passage) {
      const std::string shown = Word(word.id) + (word.typed.empty() ? "" : " (" + word.typed + ")");
      table.Row({shown, std::to_string(word.position), Decimal(word.log_probability, 4),
                 Grouped(word.rank), Best(word), Cache(word)});
    }
    return table.Finish();
  }

 private:
  std::string Word(uint32_t id) const {
    return vocabulary_ == nullptr ? std::to_string(id) : std::string(vocabulary_->Word(id));
  }
  std::string Shown(const PassageWord& word) const {
    return HtmlText(word.typed.empty() ? Word(word.id) : word.typed);
  }
  std::string Best(const PassageWord& word) const {
    std::string text;
    for (const Candidate& candidate : word.best) {
      text +=
          (text.empty() ? "" : ", ") + Word(candidate.id) + " " + Chance(candidate.log_probability);
    }
    return text;
  }
  std::string Cache(const PassageWord& word) const {
    if (!report_.text.cache) return "no cache";
    const std::string network =
        "network alone " + Chance(word.contribution.network_log_probability);
    if (word.contribution.cache_share == 0) return network + ", word not in the cache";
    return network + ", with the cache " + Chance(word.log_probability) + "; " +
           Decimal(100 * word.contribution.cache_share, 1) + " % of the cache's weight";
  }
  std::string Facts(const PassageWord& word) const {
    const std::string known = word.typed.empty() ? "" : ", scored as " + Word(word.id);
    std::string html = "<b>" + Shown(word) + "</b>" + HtmlText(known) + ": probability " +
                       Chance(word.log_probability) + ", loss " +
                       Decimal(-word.log_probability, 3) + " nats, rank " + Grouped(word.rank) +
                       "<br>Best five: " + HtmlText(Best(word));
    if (report_.text.cache) html += "<br>Cache: " + HtmlText(Cache(word));
    return html;
  }

  const ModelReport& report_;
  const Vocabulary* vocabulary_;
  std::optional<uint32_t> end_of_line_;
};

constexpr const char* kUnknownLegend =
    "<p class=\"soft\"><span class=\"u\">Dotted</span> words are not in the vocabulary: the "
    "model scored its unknown word in their place.</p>\n";

// A legend of the colours and their losses, as HTML.
std::string LossScale() {
  std::string html = "<p class=\"scale soft\">Loss in nats: ";
  for (size_t i = 0; i <= kThresholds.size(); ++i) {
    const std::string text =
        i == kThresholds.size() ? "more" : "to " + Shortened(Decimal(kThresholds[i], 1), 8);
    html += "<span class=\"k" + std::to_string(i) + "\">" + text + "</span>";
  }
  return html + "</p>\n";
}

}  // namespace

std::string PassageHtml(const ModelReport& report) {
  const PassageView view(report);
  const std::vector<PassageWord>& words = report.text.passage;
  const bool has_unknown = std::any_of(words.begin(), words.end(),
                                       [](const PassageWord& word) { return !word.typed.empty(); });
  return LossScale() + (has_unknown ? kUnknownLegend : "") + view.Words() +
         Details("Table of these words", view.Table());
}

}  // namespace kinglet
