#include "tidemark/sac/greedy_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "tidemark/plan/groups.h"

namespace tidemark::sac {

namespace {

using Members = std::set<std::uint32_t>;

Candidate make_candidate(const ModuleOperators& all, std::uint32_t head, const Members& members) {
  Candidate result;
  result.head = head;
  result.members.assign(members.begin(), members.end());
  for (const std::uint32_t member : members) {
    result.bytes += all.operators[member].bytes;
    result.ms += all.operators[member].ms;
  }
  result.score = result.ms > 0 ? static_cast<double>(result.bytes) / result.ms : std::numeric_limits<double>::max();
  return result;
}

void sort_by_score(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
}

std::vector<std::uint32_t> listed(const Members& members) { return {members.begin(), members.end()}; }

}  // namespace

GreedyOrder greedy_order(const StepIndex& index, const ModuleOperators& all, Rules rules) {
  if (rules != Rules::kTidemark) return reference_greedy_order(all, rules);
  std::unordered_map<std::uint32_t, std::uint32_t> number;  // by op
  for (std::uint32_t i = 0; i < all.operators.size(); ++i) number.emplace(all.operators[i].op.value(), i);
  GreedyOrder order;
  Members stored;
  Members unpriced;
  Members recomputed;
  for (const plan::Group& group : plan::find_groups(*index.step, index.events, all.call)) {
    Members members;
    for (const step::OpId op : group.ops)
      if (const auto found = number.find(op.value()); found != number.end()) members.insert(found->second);
    if (members.empty()) continue;
    const auto any_of = [&](auto&& has) {
      return std::any_of(members.begin(), members.end(), [&](std::uint32_t i) { return has(all.operators[i], i); });
    };
    // What came into the module and is changed there would be changed twice.
    const bool changes_outside = any_of([](const Operator& o, std::uint32_t i) { return o.changes == i; });
    if (group.must_save || (group.is_random && all.must_store_random && group.can_save())) {
      stored.merge(members);
    } else if (!group.can_save()) {
      (changes_outside ? stored : recomputed).merge(members);
    } else if (any_of([](const Operator& o, std::uint32_t) { return o.is_unpriced; })) {
      unpriced.merge(members);
    } else {
      order.candidates.push_back(make_candidate(all, *members.begin(), members));
    }
  }
  sort_by_score(order.candidates);
  order.unpriced = listed(unpriced);
  stored.merge(unpriced);
  order.stored = listed(stored);
  order.recomputed = listed(recomputed);
  return order;
}

GreedyOrder reference_greedy_order(const ModuleOperators& all, Rules rules) {
  std::map<std::uint32_t, Members> in_place;  // by head: the head and what changes its result
  Members random;
  Members recomputed;
  for (std::uint32_t i = 0; i < all.operators.size(); ++i) {
    const Operator& o = all.operators[i];
    if (o.changes) in_place[*o.changes].insert({*o.changes, i});
    if (o.is_random) random.insert(i);
    if (o.is_view_like || (rules == Rules::kReferenceB && o.name == "clone")) recomputed.insert(i);
  }
  Members stored;                     // heads
  if (rules == Rules::kReferenceB) {  // what touches a random op is one with all of them
    bool changes_outside = false;
    Members together = random;
    for (auto group = in_place.begin(); group != in_place.end();) {
      const bool touches = std::any_of(group->second.begin(), group->second.end(),
                                       [&](std::uint32_t member) { return random.contains(member); });
      if (!touches) {
        ++group;
        continue;
      }
      changes_outside = changes_outside || all.operators[group->first].changes.has_value();
      together.merge(group->second);
      group = in_place.erase(group);
    }
    random = std::move(together);
    if (changes_outside) stored.insert(*random.begin());
  }
  const bool stores_random = all.must_store_random && !random.empty();
  if (stores_random) stored.insert(*random.begin());
  for (const auto& [head, members] : in_place) {
    const bool touches_random = std::any_of(members.begin(), members.end(), [&](auto m) { return random.contains(m); });
    if (all.operators[head].changes || (touches_random && all.must_store_random)) stored.insert(head);
  }
  Members heads;
  if (!random.empty() && !stored.contains(*random.begin())) heads.insert(*random.begin());
  for (std::uint32_t i = 0; i < all.operators.size(); ++i) {
    if (stored.contains(i)) continue;
    const bool is_plain = !recomputed.contains(i) && !all.operators[i].changes && !random.contains(i);
    if (in_place.contains(i) || is_plain) heads.insert(i);
  }
  GreedyOrder order;
  const auto members_of = [&](std::uint32_t head) {
    Members members = {head};
    if (const auto found = in_place.find(head); found != in_place.end())
      members.insert(found->second.begin(), found->second.end());
    if (!random.empty() && head == *random.begin()) members.insert(random.begin(), random.end());
    return members;
  };
  for (const std::uint32_t head : heads) order.candidates.push_back(make_candidate(all, head, members_of(head)));
  sort_by_score(order.candidates);
  Members all_stored;
  for (const std::uint32_t head : stored) all_stored.merge(members_of(head));
  order.stored = listed(all_stored);
  order.recomputed = listed(recomputed);
  return order;
}

}  // namespace tidemark::sac
