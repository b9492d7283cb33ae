#include "random_problem.h"

namespace tidemark::test {

namespace {

using planner::Arc;
using planner::ArcGap;
using planner::Episode;
using planner::kNoPeak;

Arc random_arc(Random& random, std::uint32_t from, std::uint32_t to, const ProblemScale& scale) {
  const auto number = [&] { return random.between(0, scale.most); };
  Arc arc;
  arc.from = from;
  arc.to = to;
  arc.keep_bytes = number();
  arc.tail_bytes = number() * random.between(1, 4);
  if (random.chance(30)) return arc;
  arc.candidate = 0;
  arc.base_ps = number();
  const std::int64_t groups = random.between(0, scale.max_groups);
  for (std::int64_t i = 0; i < groups; ++i)
    arc.groups.push_back({number(), number(), random.chance(30) ? number() * random.between(1, 5) : kNoPeak, 0});
  arc.before.resize(arc.groups.size() + 1);
  for (ArcGap& gap : arc.before) {
    if (random.chance(40)) gap.recompute_bytes = number() * random.between(1, 5);
    if (random.chance(20)) gap.forward_bytes = number() * random.between(1, 5);
  }
  arc.needs_saved = groups > 0 && random.chance(10);
  return arc;
}

}  // namespace

Episode random_episode(Random& random, const ProblemScale& scale) {
  Episode episode;
  episode.state_count = static_cast<std::uint32_t>(random.between(2, scale.max_states));
  for (std::uint32_t state = 0; state + 1 < episode.state_count; ++state) {
    Arc plain = random_arc(random, state, state + 1, scale);
    plain.needs_saved = false;
    episode.arcs.push_back(plain);
    for (std::int64_t i = random.between(0, 2); i > 0; --i)
      episode.arcs.push_back(random_arc(
          random, state, static_cast<std::uint32_t>(random.between(state + 1, episode.state_count - 1)), scale));
  }
  episode.first_arc.assign(episode.state_count + 1, 0);
  for (const Arc& arc : episode.arcs) ++episode.first_arc[arc.from + 1];
  for (std::uint32_t i = 0; i < episode.state_count; ++i) episode.first_arc[i + 1] += episode.first_arc[i];
  return episode;
}

planner::Episode random_forward(const planner::Episode& episode, Random& random, std::int64_t most) {
  planner::Episode forward = episode;
  for (planner::Arc& arc : forward.arcs) {
    arc.tail_bytes = random.chance(40) ? random.between(0, 2 * most) : planner::kNoPeak;
    for (planner::ArcGap& gap : arc.before)
      gap = {planner::kNoPeak, random.chance(40) ? random.between(0, 2 * most) : planner::kNoPeak};
    for (planner::ArcGroup& group : arc.groups) {
      group.inside_bytes = planner::kNoPeak;
      if (!random.chance(40)) continue;
      arc.keep_bytes += group.bytes;
      group.bytes = 0;
    }
    if (random.chance(10)) arc.keep_bytes = random.between(0, most);  // neither more nor less for certain
  }
  return forward;
}

}  // namespace tidemark::test
