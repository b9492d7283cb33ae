#include <cstdio>

#include "tidemark/tidemark.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto step = tidemark::step::read_step(argv[1]);
    std::printf("%zu calls\n", step.tables().calls.size());
  } catch (const tidemark::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
