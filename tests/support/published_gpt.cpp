#include "published_gpt.h"

#include "tidemark/zoo/record.h"
#include "tidemark/zoo/toy_gpt.h"

namespace tidemark::test {

step::Step published_gpt_step() {
  zoo::ToyGptConfig config;
  config.layers = 4;
  config.heads = 12;
  config.vocabulary = 8192;
  config.positions = 1024;
  config.width = 768;
  return zoo::record(config, {.batch = 8,
                              .sequence = 1024,
                              .training = {.optimizer = nn::OptimizerKind::kAdam, .form = nn::OptimizerForm::kForeach},
                              .target = nn::Target::kCuda});
}

}  // namespace tidemark::test
