// The model of a file with its coded tables and DeFINE units as the dense tables that they amount
// to, by their equations; all else, activation quantisers too, stays.
#ifndef KINGLET_TESTS_CONVERTERS_DENSE_COUNTERPART_H_
#define KINGLET_TESTS_CONVERTERS_DENSE_COUNTERPART_H_

#include <cstddef>
#include <string>
#include <vector>

namespace kinglet {

// The twin's bytes. Rows of embeddings are exact to 48 bits, those of a softmax rounded to float32.
// REQUIRES: units have a matrix for each group, no norms, and put their input first.
std::vector<std::byte> DenseCounterpart(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_DENSE_COUNTERPART_H_
