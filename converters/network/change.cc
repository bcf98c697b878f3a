#include "converters/network/change.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/matrix_order.h"
#include "converters/network/frequencies.h"
#include "format/limits.h"
#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

using Values = std::vector<float>;
using Numbers = std::span<const double>;

std::string ExactText(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// Refuses a number of values that the function of this kind cannot take.
Status CheckValues(bool fits, std::string_view kind, const std::string& expected,
                   const Values& values) {
  if (fits) return {};
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "change", QuotedName(kind), expected,
                         std::to_string(values.size()));
}

Values ScaledBy(double factor, Values values) {
  for (float& value : values) value = static_cast<float>(factor * double{value});
  return values;
}

uint64_t Whole(double number) { return static_cast<uint64_t>(number); }

Result<Values> ApplyByHead(Numbers numbers, const Values& values) {
  std::vector<uint64_t> sizes;
  for (const double size : numbers.subspan(1)) sizes.push_back(Whole(size));
  const uint64_t rows =
      Whole(numbers[0]) * std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  KINGLET_RETURN_IF_ERROR(CheckValues(values.size() % rows == 0, "by_head",
                                      "values in " + std::to_string(rows) + " equal parts",
                                      values));
  return RowsByHead(values, Whole(numbers[0]), sizes);
}

Result<Values> ApplyTimes(Numbers numbers, Values values) {
  return ScaledBy(numbers[0], std::move(values));
}

Result<Values> ApplyTimesExpOfLast(Numbers numbers, Values values) {
  KINGLET_RETURN_IF_ERROR(
      CheckValues(!values.empty(), "times_exp_of_last", "a scale after the values", values));
  const double scale = portable::Exp(double{values.back()});
  values.pop_back();
  return ScaledBy(numbers[0] * scale, std::move(values));
}

Result<Values> ApplySinesFirst(Numbers numbers, const Values& values) {
  const uint64_t columns = Whole(numbers[0]);
  KINGLET_RETURN_IF_ERROR(CheckValues(columns % 2 == 0 && values.size() % columns == 0,
                                      "sines_first",
                                      "rows of " + std::to_string(columns) + " values", values));
  Values ordered(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t column = i % columns;
    ordered[i - column + column / 2 + (column % 2) * (columns / 2)] = values[i];
  }
  return ordered;
}

Result<Values> ApplyProduct(Numbers numbers, const Values& values) {
  const uint64_t rows = Whole(numbers[0]), inner = Whole(numbers[1]), columns = Whole(numbers[2]);
  KINGLET_RETURN_IF_ERROR(CheckValues(values.size() == inner * (rows + columns), "product",
                                      std::to_string(inner * (rows + columns)) + " values",
                                      values));
  const std::span<const float> both = values;
  const std::span<const float> a = both.first(rows * inner);
  const std::span<const float> b = both.subspan(rows * inner);
  Values product;
  std::vector<double> sums(columns);
  for (uint64_t row = 0; row < rows; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (uint64_t i = 0; i < inner; ++i) {
      const double factor{a[row * inner + i]};
      for (uint64_t j = 0; j < columns; ++j) sums[j] += factor * b[i * columns + j];
    }
    for (const double sum : sums) product.push_back(static_cast<float>(sum));
  }
  return product;
}

Result<Values> ApplyFirst(Numbers numbers, Values values) {
  KINGLET_RETURN_IF_ERROR(CheckValues(values.size() >= Whole(numbers[0]), "first",
                                      "at least " + std::to_string(Whole(numbers[0])) + " values",
                                      values));
  values.resize(Whole(numbers[0]));
  return values;
}

Result<Values> ApplyZeroMemory(Numbers numbers, const Values& values) {
  const HeadRows rows = {Whole(numbers[0]), Whole(numbers[1]), Whole(numbers[2]), numbers[3] != 0};
  KINGLET_RETURN_IF_ERROR(
      CheckValues(values.size() % (rows.All() + 1) == 0, "zero_memory",
                  std::to_string(rows.All()) + " rows and a bias of their width", values));
  const size_t width = values.size() / (rows.All() + 1);
  const std::span<const float> bias = std::span(values).last(width);
  Values start;
  const auto append = [&](uint64_t first, uint64_t count) {
    for (uint64_t row = first; row < first + count; ++row) {
      double sum = 0;
      for (size_t j = 0; j < width; ++j) sum += double{values[row * width + j]} * double{bias[j]};
      start.push_back(static_cast<float>(sum));
    }
  };
  const uint64_t key = rows.key_size, value = rows.value_size, heads = rows.heads;
  if (!rows.by_head) {
    append(heads * key, heads * (key + value));
    return start;
  }
  const uint64_t size = 2 * key + value;
  for (uint64_t head = 0; head < heads; ++head) append(head * size + key, key);
  for (uint64_t head = 0; head < heads; ++head) append(head * size + 2 * key, value);
  return start;
}

template <std::vector<float> (*kFrequencies)(uint32_t width)>
Result<Values> ApplyFrequencies(Numbers numbers, const Values& /*values*/) {
  return kFrequencies(static_cast<uint32_t>(numbers[0]));
}

Result<Values> ApplySinusoids(Numbers numbers, const Values& /*values*/) {
  return SinusoidTable(static_cast<uint32_t>(numbers[0]), static_cast<uint32_t>(numbers[1]));
}

Result<Values> ApplyZeros(Numbers numbers, const Values& /*values*/) {
  return Values(Whole(numbers[0]));
}

constexpr double kAny = -std::numeric_limits<double>::max();
struct Kind {
  std::string_view name;
  size_t least, most;   // how many numbers
  double least_number;  // each is an integer from this one to kMaxDimension; kAny: a finite number
  Result<Values> (*apply)(Numbers numbers, Values values);
};

template <Result<Values> (*kApply)(Numbers, const Values&)>
Result<Values> Unchanged(Numbers numbers, Values values) {
  return kApply(numbers, values);
}

constexpr Kind kKinds[] = {
    {"by_head", 2, 1 + 3, 1, Unchanged<ApplyByHead>},
    {"times", 1, 1, kAny, ApplyTimes},
    {"times_exp_of_last", 1, 1, kAny, ApplyTimesExpOfLast},
    {"sines_first", 1, 1, 1, Unchanged<ApplySinesFirst>},
    {"product", 3, 3, 1, Unchanged<ApplyProduct>},
    {"first", 1, 1, 0, ApplyFirst},
    {"zero_memory", 4, 4, 0, Unchanged<ApplyZeroMemory>},
    {"fairseq_frequencies", 1, 1, 4, Unchanged<ApplyFrequencies<FairseqFrequencies>>},
    {"transformer_xl_frequencies", 1, 1, 4, Unchanged<ApplyFrequencies<TransformerXlFrequencies>>},
    {"sinusoid_frequencies", 1, 1, 4, Unchanged<ApplyFrequencies<SinusoidFrequencies>>},
    {"sinusoids", 2, 2, 1, Unchanged<ApplySinusoids>},
    {"zeros", 1, 1, 1, Unchanged<ApplyZeros>},
};

// REQUIRES: a kind of the list.
Change Of(std::string_view name, std::vector<double> numbers) {
  const Kind& kind = *std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [name](const Kind& one) { return one.name == name; });
  Change change;
  change.functions.push_back({std::string(kind.name), numbers,
                              [apply = kind.apply, numbers](Values values) -> Result<Values> {
                                return apply(numbers, std::move(values));
                              }});
  return change;
}

double Number(uint64_t size) { return static_cast<double>(size); }

}  // namespace

std::string Change::Text() const {
  std::string text;
  for (const Function& function : functions) {
    text += " " + std::string(function.kind);
    for (const double number : function.numbers) text += " " + ExactText(number);
  }
  return text;
}

Result<std::vector<float>> Change::Apply(std::vector<float> values) const {
  for (const Function& function : functions) {
    KINGLET_ASSIGN_OR_RETURN(values, function.apply(std::move(values)));
  }
  return values;
}

Result<Change> MakeChange(std::string_view kind, const std::vector<double>& numbers) {
  std::string known;
  for (const Kind& one : kKinds) {
    known += (known.empty() ? "" : ", ") + std::string(one.name);
    if (one.name != kind) continue;
    const bool whole = one.least_number != kAny;
    // Values that are made of nothing have no checkpoint's size.
    constexpr double kMostMade = 1 << 28;
    const bool made = one.name == "sinusoids" || one.name == "zeros";
    const bool fits = !made || std::accumulate(numbers.begin(), numbers.end(), 1.0,
                                               std::multiplies<>()) <= kMostMade;
    const bool right = fits && std::all_of(numbers.begin(), numbers.end(), [&](double number) {
                         return number >= one.least_number &&
                                number <= (whole ? Number(kMaxDimension) : -kAny) &&
                                (!whole || number == std::floor(number));
                       });
    if (right && numbers.size() >= one.least && numbers.size() <= one.most) {
      return Of(kind, numbers);
    }
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "change", QuotedName(kind),
                           std::to_string(one.least) + " to " + std::to_string(one.most) +
                               (whole ? " sizes" : " numbers"),
                           std::to_string(numbers.size()) + " numbers, or others");
  }
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "change", QuotedName(kind), "one of " + known,
                         "no such function");
}

Change Then(Change first, Change second) {
  first.functions.insert(first.functions.end(), second.functions.begin(), second.functions.end());
  return first;
}

Change ByHead(uint64_t heads, const std::vector<uint64_t>& sizes) {
  std::vector<double> numbers = {Number(heads)};
  numbers.insert(numbers.end(), sizes.begin(), sizes.end());
  return Of("by_head", std::move(numbers));
}

Change Scaled(double factor) { return Of("times", {factor}); }

Change ScaledByLast(double factor) { return Of("times_exp_of_last", {factor}); }

Change SinesFirst(uint64_t columns) { return Of("sines_first", {Number(columns)}); }

Change ProductOf(uint64_t rows, uint64_t inner, uint64_t columns) {
  return Of("product", {Number(rows), Number(inner), Number(columns)});
}

Change First(uint64_t count) { return Of("first", {Number(count)}); }

Change ZeroMemory(const HeadRows& rows) {
  return Of("zero_memory", {Number(rows.heads), Number(rows.key_size), Number(rows.value_size),
                            rows.by_head ? 1.0 : 0.0});
}

Change MadeFairseqFrequencies(uint32_t width) { return Of("fairseq_frequencies", {1.0 * width}); }

Change MadeSinusoidFrequencies(uint32_t width) { return Of("sinusoid_frequencies", {1.0 * width}); }

Change MadeZeros(uint64_t count) { return Of("zeros", {Number(count)}); }

Change MadeSinusoids(uint32_t positions, uint32_t width) {
  return Of("sinusoids", {1.0 * positions, 1.0 * width});
}

}  // namespace kinglet
