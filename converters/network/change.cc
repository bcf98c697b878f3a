#include "converters/network/change.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "converters/matrix_order.h"

namespace kinglet {
namespace {

using Values = std::vector<float>;

Values ScaledBy(double factor, Values values) {
  for (float& value : values) value = static_cast<float>(factor * double{value});
  return values;
}

std::string ExactText(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string Named(const char* what, const std::vector<uint64_t>& numbers) {
  std::string name = std::string(" ") + what;
  for (const uint64_t number : numbers) name += " " + std::to_string(number);
  return name;
}

}  // namespace

Change Then(Change first, Change second) {
  return {first.name + second.name,
          [first = std::move(first.apply),
           second = std::move(second.apply)](Values values) -> Result<Values> {
            KINGLET_ASSIGN_OR_RETURN(Values changed, first(std::move(values)));
            return second(std::move(changed));
          }};
}

Change ByHead(uint64_t heads, std::vector<uint64_t> sizes) {
  std::vector<uint64_t> numbers = sizes;
  numbers.push_back(heads);
  return {Named("by head", numbers), [heads, sizes = std::move(sizes)](const Values& values) {
            return RowsByHead(values, heads, sizes);
          }};
}

Change Scaled(double factor) {
  return {" times " + ExactText(factor),
          [factor](Values values) { return ScaledBy(factor, std::move(values)); }};
}

Change ScaledByLast(double factor) {
  return {" times its scale and " + ExactText(factor), [factor](Values values) {
            const double scale = std::exp(double{values.back()});
            values.pop_back();
            return ScaledBy(factor * scale, std::move(values));
          }};
}

Change SinesFirst(uint64_t columns) {
  return {Named("sines first", {columns}), [columns](const Values& values) {
            Values ordered(values.size());
            for (size_t i = 0; i < values.size(); ++i) {
              const uint64_t column = i % columns;
              ordered[i - column + column / 2 + (column % 2) * (columns / 2)] = values[i];
            }
            return ordered;
          }};
}

Change ProductOf(uint64_t rows, uint64_t inner, uint64_t columns) {
  return {Named("product", {rows, inner, columns}), [rows, inner, columns](const Values& values) {
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
          }};
}

Change First(uint64_t count) {
  return {Named("first", {count}), [count](Values values) {
            values.resize(count);
            return values;
          }};
}

Change ZeroMemory(const HeadRows& rows) {
  return {Named("zero memory", {rows.heads, rows.key_size, rows.value_size, rows.by_head}),
          [rows](const Values& values) {
            const size_t width = values.size() / (rows.All() + 1);
            const std::span<const float> bias = std::span(values).last(width);
            Values start;
            const auto append = [&](uint64_t first, uint64_t count) {
              for (uint64_t row = first; row < first + count; ++row) {
                double sum = 0;
                for (size_t j = 0; j < width; ++j) {
                  sum += double{values[row * width + j]} * double{bias[j]};
                }
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
          }};
}

}  // namespace kinglet
