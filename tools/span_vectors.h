// kinglet embed --spans: a vector for each word of a text, from what a model of characters has read
// around it.
#ifndef KINGLET_TOOLS_SPAN_VECTORS_H_
#define KINGLET_TOOLS_SPAN_VECTORS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet {

// `line` is from 1. The vector lives during the call.
using SpanSink =
    std::function<Status(uint64_t line, std::string_view word, std::span<const double> vector)>;

// Contextual string vectors (Akbik et al. 2018), as flair's FlairEmbeddings computes them. Each
// line of the file is a text of words with one space between them, which is read as a stream of its
// own, after a newline: from its beginning, or from its end by a model that reads backward. A
// word's vector is the hidden state after the space that follows the word in reading order. "-" is
// standard input. Errors: KINGLET_UNSUPPORTED for a model whose tokens are not characters, and for
// one that runs on a device; those of reading the file, of running the model and of `sink`.
Status ForEachSpan(const std::string& path, const std::shared_ptr<const Model>& model,
                   const SpanSink& sink);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SPAN_VECTORS_H_
