// The probability of a text's continuation, word by word, in C++17 against the installed package.
// The numbers are those of the example of beam search, computed another way.
//
//   rescore MODEL.kgl PROMPT_WORDS WORD...      the first PROMPT_WORDS words are given
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <kinglet/kinglet.hpp>

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const kinglet::Result<kinglet::Model> model = kinglet::Model::Open(argv[1]);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  kinglet::Result<kinglet::Session> session = kinglet::Session::Create(*model);
  if (!session.ok()) return 1;
  double log_probability = 0;
  for (int i = 3; i < argc; ++i) {
    const kinglet::Result<uint32_t> id = model->FindToken(argv[i]);
    if (!id.ok()) return 1;
    if (i - 3 >= std::atoi(argv[2])) {
      const kinglet::Result<double> one = session->LogProbability(*id);
      if (!one.ok()) return 1;
      log_probability += *one;
    }
    if (!session->Step(*id).ok()) return 1;
  }
  std::printf("%8.4f%%\n", 100 * std::exp(log_probability));
  return 0;
}
