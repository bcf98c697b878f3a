// Networks whose published parameters follow from their shapes: Baevski & Auli 2019, tables 1, 3, 4
// and 7, and Mehta et al. 2020, tables 1 and 2.
#ifndef KINGLET_TESTS_SYNTHESIS_PUBLISHED_NETWORKS_H_
#define KINGLET_TESTS_SYNTHESIS_PUBLISHED_NETWORKS_H_

#include <string>
#include <vector>

#include "tests/synthesis/network_outline.h"

namespace kinglet {

// Millions of parameters, as printed: the number of digits tells how exact a figure is.
struct PublishedParameters {
  std::string row;    // "ADP-T"
  std::string table;  // "3, 7"
  std::string total;  // of adaptive inputs; empty in the rows of DeFINE
  // Of DeFINE: the column of the unit cannot be derived (docs/PAPERS.md).
  std::string context, ends, unit;
  NetworkOutline network;
};

std::vector<PublishedParameters> PublishedAdaptiveInputs();
std::vector<PublishedParameters> PublishedDefine();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_PUBLISHED_NETWORKS_H_
