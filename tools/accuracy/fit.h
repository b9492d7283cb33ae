#pragma once

#include <map>
#include <string>
#include <vector>

#include "op_times.h"
#include "tidemark/cost/constants.h"

namespace tidemark::accuracy {

// The constants that are fitted, by name.
struct Knob {
  std::string name;
  double* (*at)(cost::Constants&);
};
const std::vector<Knob>& knobs();

// How far the constants are off on the measurements of `gpus`: the mean over GPUs, ops and parts of the mean absolute
// logarithm of predicted over measured. Random shapes count a quarter of shapes of models.
double loss(const OpTimes& times, const std::vector<std::string>& gpus, const cost::Constants& constants);

// Constants with less loss: one at a time, in smaller and smaller steps, from `start`. Deterministic.
cost::Constants fit(const OpTimes& times, const std::vector<std::string>& gpus, const cost::Constants& start);

// Round numbers to start a fit from. A fit that started from the library's constants would know of the GPU that it
// leaves out.
cost::Constants plain_start();

// By GPU, the constants fitted to the others.
std::map<std::string, cost::Constants> fit_without_each(const OpTimes& times);

}  // namespace tidemark::accuracy
