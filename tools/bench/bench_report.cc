#include "tools/bench/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/console.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

constexpr int kTimeDigits = 9;

// The query for people: "topk 10, all".
std::string QueryText(const BenchQuery& query) {
  std::string text(BenchModeName(query.mode));
  if (query.mode == BenchMode::kTopK) text += " " + std::to_string(query.top);
  if (query.no_skip) text += ", all";
  return text;
}

template <class... Values>
std::string Formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

// The state of the streams that were measured.
std::string StreamsText(const BenchResult& result) {
  if (result.text_length) return "texts of " + Grouped(*result.text_length) + " tokens";
  if (!result.encode) return "cache and context full";
  return Formatted("targets of %s tokens, sources of %s",
                   Grouped(result.encode->target_length).c_str(),
                   Grouped(result.encode->source_length).c_str());
}

void AppendSummary(const char* name, const LatencySummary& us, JsonLine& line) {
  line.Key(name).BeginObject();
  line.Key("p50").Number(us.p50).Key("p90").Number(us.p90).Key("p99").Number(us.p99);
  line.Key("mean").Number(us.mean).EndObject();
}

// null if there is no value.
void AppendIfKnown(const char* name, const std::optional<double>& number, JsonLine& line) {
  line.Key(name);
  if (number) {
    line.Number(*number);
  } else {
    line.Null();
  }
}

// A device's peak; 0 means unknown and becomes null.
void AppendPeak(const char* name, double peak, JsonLine& line) {
  AppendIfKnown(name, peak > 0 ? std::optional<double>(peak) : std::nullopt, line);
}

// A column; a dash if the value is unknown.
std::string PercentText(const std::optional<double>& fraction) {
  return fraction ? Formatted("%7.2f%%", 100 * *fraction) : Formatted("%8s", "-");
}

std::string NodesText(const BenchResult& result, size_t count) {
  std::vector<BenchNode> nodes = result.nodes;
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const BenchNode& a, const BenchNode& b) { return a.us > b.us; });
  std::string text = Formatted("\n%-36s %9s %6s %11s %12s", QueryText(result.query).c_str(), "us",
                               "share", "bytes", "muls");
  if (result.device) text += Formatted(" %8s %8s", "memory", "tensor");
  text += "\n";
  BenchNode rest{std::to_string(nodes.size() - std::min(count, nodes.size())) + " more"};
  for (size_t i = 0; i < nodes.size(); ++i) {
    const BenchNode& node = nodes[i];
    if (i >= count) {
      rest.us += node.us;
      rest.bytes += node.bytes;
      rest.muls += node.muls;
    }
    const bool last = i + 1 == nodes.size() && i >= count;
    if (i >= count && !last) continue;
    const BenchNode& shown = last ? rest : node;
    text += Formatted("  %-34s %9.2f %5.1f%% %11.0f %12.0f", shown.name.c_str(), shown.us,
                      100 * shown.us / result.us_per_token.mean, shown.bytes, shown.muls);
    if (result.device) {
      text += " " + PercentText(shown.memory_fraction) + " " + PercentText(shown.tensor_fraction);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

LatencySummary Summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto percentile = [&values](size_t p) {
    const size_t rank = (p * values.size() + 99) / 100;
    return values[std::max<size_t>(rank, 1) - 1];
  };
  double sum = 0;
  for (const double value : values) sum += value;
  return {percentile(50), percentile(90), percentile(99), sum / static_cast<double>(values.size())};
}

void AddRemainder(BenchResult& result) {
  double sum = 0;
  for (const BenchNode& node : result.nodes) sum += node.us;
  result.nodes.push_back({"other", result.us_per_token.mean - sum});
}

std::string BenchJson(const BenchResult& result) {
  JsonLine line(kTimeDigits);
  line.Key("mode").Text(BenchModeName(result.query.mode));
  line.Key("lanes").Integer(result.lanes).Key("threads").Integer(result.threads);
  AppendSummary("us_per_token", result.us_per_token, line);
  if (result.text_length) line.Key("text_length").Integer(*result.text_length);
  if (const auto& encode = result.encode) {
    line.Key("encode").BeginObject().Key("source_length").Integer(encode->source_length);
    line.Key("target_length").Integer(encode->target_length);
    AppendSummary("us_per_source_token", encode->us_per_source_token, line);
    line.EndObject();
  }
  line.Key("tokens_per_s").Number(result.TokensPerSecond());
  if (result.device) {
    line.Key("roofline_us").Null().Key("roofline_bytes").Null();
  } else {
    line.Key("roofline_us").Number(result.roofline_us);
    line.Key("roofline_bytes").Integer(static_cast<uint64_t>(std::llround(result.roofline_bytes)));
  }
  line.Key("tails_opened").Number(result.tails_opened);
  if (result.rows_computed) line.Key("rows_computed").Number(*result.rows_computed);
  line.Key("peak_rss_bytes");
  if (result.peak_rss_bytes) {
    line.Integer(*result.peak_rss_bytes);
  } else {
    line.Null();
  }
  line.Key("steps").BeginArray();
  for (const BenchNode& node : result.nodes) {
    line.BeginObject().Key("name").Text(node.name).Key("us").Number(node.us);
    if (node.us_p50) line.Key("us_p50").Number(*node.us_p50);
    line.Key("bytes").Number(node.bytes).Key("muls").Number(node.muls);
    if (result.device) {
      AppendIfKnown("memory_fraction", node.memory_fraction, line);
      AppendIfKnown("tensor_fraction", node.tensor_fraction, line);
    }
    line.EndObject();
  }
  line.EndArray();
  line.Key("ratio");
  if (result.device) {
    line.Null();
  } else {
    line.Number(result.Ratio());
  }
  line.Key("timed").Integer(result.timed);
  line.Key("interrupted").Integer(result.interrupted);
  if (result.query.mode == BenchMode::kTopK) line.Key("top").Integer(result.query.top);
  line.Key("no_skip").Boolean(result.query.no_skip).Key("backend").Text(result.backend);
  if (const auto& device = result.device) {
    line.Key("device").BeginObject().Key("name").Text(device->name);
    line.Key("weight_bytes").Integer(device->weight_bytes);
    line.Key("bytes_per_lane").Integer(device->bytes_per_lane);
    line.Key("launches").Number(device->launches);
    line.Key("bytes_to_device").Number(device->bytes_to_device);
    line.Key("bytes_to_host").Number(device->bytes_to_host);
    AppendPeak("peak_bytes_per_s", device->peaks.bytes_per_second, line);
    AppendPeak("peak_byte_products_per_s", device->peaks.byte_products_per_second, line);
    line.EndObject();
  }
  return line.Finish();
}

std::string InterruptionsText(const std::vector<BenchResult>& results) {
  uint64_t timed = 0, interrupted = 0;
  for (const BenchResult& result : results) {
    timed += result.timed;
    interrupted += result.interrupted;
  }
  if (interrupted == 0) return "";
  return "other work on this machine interrupted " + Grouped(interrupted) + " of " +
         Grouped(timed) + " steps; means and high percentiles include the interruptions";
}

std::string BenchText(const std::vector<BenchResult>& results, size_t nodes) {
  const BenchResult& first = results.front();
  std::string text = Formatted("%s, %zu lane%s on %zu thread%s, %s steps of each mode, %s\n\n",
                               first.backend.c_str(), first.lanes, first.lanes == 1 ? "" : "s",
                               first.threads, first.threads == 1 ? "" : "s",
                               Grouped(first.timed).c_str(), StreamsText(first).c_str());
  text += Formatted("%-14s %9s %9s %9s %9s %10s ", "us per token", "p50", "p90", "p99", "mean",
                    "tokens/s");
  text += first.device
              ? Formatted("%9s %11s %11s %6s\n", "launches", "bytes to", "and from", "tails")
              : Formatted("%11s %14s %6s %6s\n", "roofline us", "roofline bytes", "ratio", "tails");
  for (const BenchResult& result : results) {
    const LatencySummary& us = result.us_per_token;
    text += Formatted("%-14s %9.2f %9.2f %9.2f %9.2f %10.0f ", QueryText(result.query).c_str(),
                      us.p50, us.p90, us.p99, us.mean, result.TokensPerSecond());
    if (const auto& device = result.device) {
      text += Formatted("%9.1f %11.0f %11.0f ", device->launches, device->bytes_to_device,
                        device->bytes_to_host);
    } else {
      text += Formatted("%11.2f %14.0f %6.2f ", result.roofline_us, result.roofline_bytes,
                        result.Ratio());
    }
    text += Formatted("%6.3f\n", result.tails_opened);
  }
  if (first.encode) {
    const LatencySummary& us = first.encode->us_per_source_token;
    text += Formatted("%-14s %9.2f %9.2f %9.2f %9.2f   per source token\n", "encode", us.p50,
                      us.p90, us.p99, us.mean);
  }
  if (first.rows_computed) {
    text += Formatted("%.3f rows of the input were computed a token; the others were cached\n",
                      *first.rows_computed);
  }
  const std::string interruptions = InterruptionsText(results);
  if (!interruptions.empty()) text += "\n" + interruptions + "\n";
  for (const BenchResult& result : results) {
    if (nodes > 0) text += NodesText(result, nodes);
  }
  if (const auto& device = first.device) {
    text += "\n" + device->name + ": " + Grouped(device->weight_bytes) + " bytes of weights, " +
            Grouped(device->bytes_per_lane) + " per lane; launches and bytes are per step\n";
    if (nodes > 0) text += "memory and tensor: fraction of the device's peak while the node ran\n";
  }
  if (first.peak_rss_bytes) {
    text += "\npeak memory " + Grouped(*first.peak_rss_bytes) + " bytes\n";
  }
  return text;
}

}  // namespace kinglet
