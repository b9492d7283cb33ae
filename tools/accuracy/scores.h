#pragma once

#include <map>
#include <string>
#include <vector>

#include "op_times.h"
#include "tidemark/cost/constants.h"

namespace tidemark::accuracy {

// Mean error in percent of the model and of plain roofline, on one GPU.
struct Score {
  double model = 0;
  double roofline = 0;
};

// By GPU; the ops of the elementwise file are one op here, "pointwise".
using Scores = std::map<std::string, Score>;

// op and part -> scores, with the constants that were fitted without each GPU.
std::map<std::pair<std::string, std::string>, Scores> op_scores(const OpTimes& times,
                                                                const std::map<std::string, cost::Constants>& without);

// Of the pairs of rows of one op on one GPU whose measured times differ by a factor of 1.2 to 2, the part in percent
// that is ordered right: by op as the file names it, then GPU.
std::map<std::string, Scores> rankings(const OpTimes& times, const std::map<std::string, cost::Constants>& without);

struct StepScore {
  const StepRow* step = nullptr;
  double model_s = 0;
  double roofline_s = 0;
};
std::vector<StepScore> step_scores(const OpTimes& times, const std::map<std::string, cost::Constants>& without);

Score tensor_core_score(const OpTimes& times, const cost::Constants& constants);

double mean_of(const Scores& scores, double Score::*field);
double worst_of(const Scores& scores, double Score::*field);

}  // namespace tidemark::accuracy
