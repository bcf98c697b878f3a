#include "tools/report/origin.h"

#include <ctime>
#include <fstream>
#include <thread>

namespace kinglet {
namespace {

std::string DateText() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[40] = "";
  if (gmtime_r(&now, &parts) != nullptr) {
    std::strftime(text, sizeof(text), "on %Y-%m-%d at %H:%M UTC", &parts);
  }
  return text;
}

// The name that Linux gives the processor.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "a processor without a name";
}

std::string MachineText() {
  const unsigned processors = std::thread::hardware_concurrency();
  return ProcessorName() + ", " + std::to_string(processors) +
         (processors == 1 ? " processor" : " processors");
}

}  // namespace

std::string OriginText() {
  return "Written " + DateText() + " by kinglet " KINGLET_VERSION " on " + MachineText() + ".";
}

}  // namespace kinglet
