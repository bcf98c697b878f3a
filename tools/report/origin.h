// When, by which version and on which machine a page was written.
#ifndef KINGLET_TOOLS_REPORT_ORIGIN_H_
#define KINGLET_TOOLS_REPORT_ORIGIN_H_

#include <string>

namespace kinglet {

// "Written on 2026-11-28 at 12:15 UTC by kinglet 0.1.0 on AMD EPYC, 2 processors."
std::string OriginText();

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_ORIGIN_H_
