#include "tools/report/loss_parts.h"

#include <cmath>

#include "tools/report/html.h"

namespace kinglet {
namespace {

constexpr const char* kMarksLegend =
    "<p class=\"legend\">Bars: with the cache. Diamonds: network alone.</p>";

std::vector<Bar> FrequencyBars(const ModelReport& report) {
  std::vector<Bar> bars;
  for (const LossBin& bin : report.text.frequency) {
    bars.push_back({"ranks " + bin.Range(),
                    Grouped(bin.tokens) + " tokens, " + Decimal(bin.nll(), 3), bin.nll()});
  }
  return bars;
}

std::vector<Bar> DistanceBars(const ModelReport& report) {
  std::vector<Bar> bars;
  for (size_t i = 0; i < report.text.gaps.size(); ++i) {
    const LossBin& bin = report.text.gaps[i];
    Bar bar{bin.to ? bin.Range() + " back" : bin.Range(),
            Grouped(bin.tokens) + " tokens, " + Decimal(bin.nll(), 3), bin.nll()};
    if (report.text.cache) bar.mark = report.text.network_gaps[i].nll();
    bars.push_back(bar);
  }
  return bars;
}

// The rows of the cache's picture and table that have tokens.
std::vector<std::pair<const char*, CachedLoss>> CacheRows(const ModelReport& report) {
  std::vector<std::pair<const char*, CachedLoss>> rows;
  if (!report.text.cache) return rows;
  const CacheTally& cache = *report.text.cache;
  for (const auto& [name, loss] :
       {std::pair("all tokens", &cache.all), {"hits", &cache.hits}, {"misses", &cache.misses}}) {
    if (loss->tokens > 0) rows.emplace_back(name, *loss);
  }
  return rows;
}

std::vector<Bar> CacheBars(const ModelReport& report) {
  std::vector<Bar> bars;
  for (const auto& [name, loss] : CacheRows(report)) {
    bars.push_back({name, Decimal(loss.nll(), 3) + ", alone " + Decimal(loss.nll_network(), 3),
                    loss.nll(), loss.nll_network()});
  }
  return bars;
}

}  // namespace

Part FrequencyPart(Reports reports) {
  const Part bars = Bars(reports, "Mean loss in nats by frequency rank", FrequencyBars);
  return [bars](const ModelReport& report) {
    HtmlTable table("Mean loss by frequency rank", {"ranks", "tokens", "nats"});
    for (const LossBin& bin : report.text.frequency) {
      table.Row({bin.Range(), Grouped(bin.tokens), Decimal(bin.nll(), 6)});
    }
    return Figure(bars(report)) + Details("Table of ranks", table.Finish());
  };
}

Part GapPart(Reports reports) {
  const Part bars =
      Bars(reports, "Mean loss in nats by distance to the word's last occurrence", DistanceBars);
  return [bars](const ModelReport& report) {
    HtmlTable table("Mean loss by distance to the word's last occurrence",
                    {"distance", "tokens", "nats", "network alone"});
    for (size_t i = 0; i < report.text.gaps.size(); ++i) {
      const LossBin& bin = report.text.gaps[i];
      table.Row({bin.Range(), Grouped(bin.tokens), Decimal(bin.nll(), 6),
                 report.text.cache ? Decimal(report.text.network_gaps[i].nll(), 6) : "no cache"});
    }
    return Figure(bars(report), report.text.cache ? kMarksLegend : "") +
           Details("Table of distances", table.Finish());
  };
}

Part CachePart(Reports reports) {
  const Part bars =
      Bars(reports, "Mean loss in nats of hits and misses, with the cache and without", CacheBars);
  return [bars](const ModelReport& report) -> std::string {
    if (!report.text.cache) return "<p>This model has no neural cache.</p>\n";
    const CacheTally& cache = *report.text.cache;
    HtmlTable table("Losses with the cache and without",
                    {"tokens", "number", "nats with the cache", "nats by the network alone"});
    for (const auto& [name, loss] : CacheRows(report)) {
      table.Row(
          {name, Grouped(loss.tokens), Decimal(loss.nll(), 6), Decimal(loss.nll_network(), 6)});
    }
    return "<p>" + Grouped(cache.hits.tokens) + " of " + Grouped(cache.all.tokens) +
           " scored tokens were hits, " + Decimal(100 * cache.hit_share(), 1) +
           " %. Perplexity is " + Decimal(std::exp(cache.all.nll()), 2) + " with the cache and " +
           Decimal(std::exp(cache.all.nll_network()), 2) + " by the network alone.</p>\n" +
           Figure(bars(report), kMarksLegend) + Details("Table of hits", table.Finish());
  };
}

}  // namespace kinglet
