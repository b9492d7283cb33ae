#include "tidemark/verify/verify_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "tidemark/base/bytes.h"
#include "tidemark/base/error.h"

namespace tidemark::verify {

namespace {

using namespace step;

// The rules of "Legality" in docs/how_memory_is_counted.md, one after the other.
class Judge {
 public:
  Judge(const Step& step, const plan::Plan& plan) : step_(step), events_(step.tables().events), plan_(plan) {
    std::uint32_t task = 0;
    for (std::uint32_t at = 0; at < events_.size(); ++at) {
      if (events_[at].kind == EventKind::kEnter) enter_[CallId(events_[at].id)] = at;
      if (events_[at].kind == EventKind::kExit) exit_[CallId(events_[at].id)] = at;
      if (events_[at].kind == EventKind::kAlloc) alloc_[StorageId(events_[at].id)] = at;
      if (events_[at].kind == EventKind::kPhase) task = step[PassId(events_[at].id)].graph_task;
      if (events_[at].kind == EventKind::kUnpack) {
        unpack_.emplace(SaveId(events_[at].id), at);
        tasks_[SaveId(events_[at].id)].insert(task);
      }
      if (events_[at].kind != EventKind::kBegin) continue;
      for (const Output& output : step.outputs(step[OpId(events_[at].id)]))
        if (output.alias == AliasKind::kMutates) written_[step[output.tensor].storage].insert(at);
    }
  }

  std::vector<std::string> run() {
    std::set<CallId> seen;
    for (const plan::Unit& unit : plan_.units) {
      if (!enter_.contains(unit.call)) {
        say("a unit is no call of the step");
        continue;
      }
      if (!seen.insert(unit.call).second) say(name(unit) + " is a unit twice");
      for (CallId around = step_[unit.call].parent; around.has_value(); around = step_[around].parent)
        for (const plan::Unit& other : plan_.units)
          if (other.call == around) say(name(unit) + " lies inside " + name(other));
      judge(unit);
    }
    return std::move(violations_);
  }

 private:
  void say(std::string sentence) { violations_.push_back(std::move(sentence)); }
  std::string name(const plan::Unit& unit) const {
    const std::string fqn = step_.fqn(step_[unit.call].module);
    return "the call of " + (fqn.empty() ? std::string("the root") : fqn);
  }
  std::string name(OpId op) const {
    return "op " + std::to_string(op.value()) + ", " + std::string(step_.text(step_[op].name)) + ",";
  }

  void judge(const plan::Unit& unit) {
    const PassKind kind = step_[step_[unit.call].pass].kind;
    if (kind != PassKind::kForward && kind != PassKind::kLoss) return say(name(unit) + " is not in a forward pass");
    std::vector<OpId> ops;
    bool keeps_anything = false;
    std::set<std::uint32_t> backwards;
    recompute_ = kNever;
    for (std::uint32_t at = enter_.at(unit.call) + 1; at < exit_.at(unit.call); ++at) {
      const Event& event = events_[at];
      if (event.kind == EventKind::kNode || event.kind == EventKind::kDone || event.kind == EventKind::kUnpack ||
          event.kind == EventKind::kDrop)
        return say("a backward runs inside " + name(unit));
      if (event.kind == EventKind::kPack && step_[SaveId(event.id)].hooked) {
        keeps_anything = true;
        if (const auto found = unpack_.find(SaveId(event.id)); found != unpack_.end())
          recompute_ = std::min(recompute_, found->second);
        if (const auto found = tasks_.find(SaveId(event.id)); found != tasks_.end())
          backwards.insert(found->second.begin(), found->second.end());
      }
      if (event.kind == EventKind::kBegin) ops.emplace_back(event.id);
    }
    if (backwards.size() > 1) say("more than one backward needs " + name(unit) + ", and each would recompute it");
    if (!keeps_anything) say("autograd keeps nothing for " + name(unit));
    const std::set<OpId> inside(ops.begin(), ops.end());
    std::set<OpId> saved;
    for (const OpId op : unit.saved_ops) {
      if (!inside.contains(op)) return say("a saved op does not run in " + name(unit));
      saved.insert(op);
    }
    judge_reads(unit, ops);
    judge_ops(unit, ops, saved);
    judge_groups(unit, ops, saved);
  }

  bool is_made_in(const plan::Unit& unit, StorageId storage) const {
    const auto made = alloc_.find(storage);
    return made != alloc_.end() && made->second > enter_.at(unit.call) && made->second < exit_.at(unit.call);
  }

  // When the recompute runs, what it finds outside is what the forward found there.
  void judge_reads(const plan::Unit& unit, const std::vector<OpId>& ops) {
    if (recompute_ == kNever) return;
    std::set<StorageId> touched;
    for (const TensorId tensor : step_.inputs(step_[unit.call])) touched.insert(step_[tensor].storage);
    for (const OpId op : ops) {
      for (const TensorId tensor : step_.inputs(step_[op])) touched.insert(step_[tensor].storage);
      for (const Output& output : step_.outputs(step_[op])) touched.insert(step_[output.tensor].storage);
    }
    for (const StorageId storage : touched) {
      if (is_made_in(unit, storage) || !is_written(storage, enter_.at(unit.call), recompute_)) continue;
      // A buffer that the unit writes into itself is put back before the recompute.
      if (step_[storage].role == Role::kBuffer && is_written(storage, enter_.at(unit.call), exit_.at(unit.call)))
        continue;
      say("storage " + std::to_string(storage.value()) + ", which " + name(unit) +
          " reads, is written to in place before it is recomputed");
    }
  }

  bool is_written(StorageId storage, std::uint32_t from, std::uint32_t to) const {
    const auto found = written_.find(storage);
    if (found == written_.end()) return false;
    const auto first = found->second.lower_bound(from);
    return first != found->second.end() && *first < to;
  }

  void judge_ops(const plan::Unit& unit, const std::vector<OpId>& ops, const std::set<OpId>& saved) {
    for (const OpId op : ops) {
      const Op& row = step_[op];
      if (row.region.has_value() && step_[row.region].kind == RegionKind::kCheckpoint)
        return say(name(op) + " runs in a checkpoint of the model's own");
      if (!saved.contains(op)) continue;
      bool makes_any = step_.outputs(row).empty();
      for (const Output& output : step_.outputs(row)) {
        makes_any = makes_any || output.alias == AliasKind::kFresh;
        if (output.alias == AliasKind::kView || output.alias == AliasKind::kExisting)
          say(name(op) + " is saved and returns a view");
        if (output.alias == AliasKind::kMutates && is_made_in(unit, step_[output.tensor].storage))
          say(name(op) + " is saved and changes a tensor in place");
      }
      if (!makes_any) say(name(op) + " is saved and makes nothing new");
    }
  }

  // Grows a set of ops that belong together until nothing joins any more, for every op.
  void judge_groups(const plan::Unit& unit, const std::vector<OpId>& ops, const std::set<OpId>& saved) {
    std::map<StorageId, std::set<OpId>> users;  // of storages made in the unit: who returns them
    std::set<OpId> random;
    for (const OpId op : ops) {
      if (step_[op].flags.has(OpFlag::kRandom)) random.insert(op);
      for (const Output& output : step_.outputs(step_[op]))
        if (const StorageId storage = step_[output.tensor].storage; is_made_in(unit, storage))
          users[storage].insert(op);
    }
    std::set<OpId> done;
    for (const OpId first : ops) {
      if (done.contains(first)) continue;
      std::set<OpId> group = {first};
      std::vector<OpId> open = {first};
      const auto join = [&](const std::set<OpId>& others) {
        for (const OpId other : others)
          if (group.insert(other).second) open.push_back(other);
      };
      while (!open.empty()) {
        const OpId op = open.back();
        open.pop_back();
        if (random.contains(op)) join(random);
        for (const Output& output : step_.outputs(step_[op]))
          if (const auto found = users.find(step_[output.tensor].storage); found != users.end()) join(found->second);
      }
      done.insert(group.begin(), group.end());
      judge_group(unit, group, saved);
    }
  }

  void judge_group(const plan::Unit& unit, const std::set<OpId>& group, const std::set<OpId>& saved) {
    const bool is_saved = std::any_of(group.begin(), group.end(), [&](OpId op) { return saved.contains(op); });
    bool has_outputs = false;
    for (const OpId op : group) has_outputs = has_outputs || !step_.outputs(step_[op]).empty();
    for (const OpId op : group) {
      const OpFlags flags = step_[op].flags;
      const bool must_not_repeat = flags.has(OpFlag::kMustSave) || flags.has(OpFlag::kCollective) ||
                                   flags.has(OpFlag::kSideEffect) || flags.has(OpFlag::kDataDependent) ||
                                   flags.has(OpFlag::kHostCopy) || flags.has(OpFlag::kRouting);
      if (!is_saved && must_not_repeat) say(name(op) + " must not run twice and is recomputed");
      if (!is_saved && flags.has(OpFlag::kRandom) && !unit.preserve_rng)
        say(name(op) + " is random and recomputed without its random state");
      if (!is_saved) continue;
      bool makes_any = !has_outputs;
      for (const Output& output : step_.outputs(step_[op])) {
        makes_any = makes_any || output.alias == AliasKind::kFresh;
        if (output.alias == AliasKind::kMutates && is_made_in(unit, step_[output.tensor].storage))
          say(name(op) + " changes in place what is saved");
        if (recompute_ != kNever && is_made_in(unit, step_[output.tensor].storage) &&
            is_written(step_[output.tensor].storage, exit_.at(unit.call), recompute_))
          say("what " + name(op) + " saves is changed in place later");
      }
      if (makes_any && !saved.contains(op)) say(name(op) + " is recomputed while ops it belongs to are saved");
    }
  }

  const Step& step_;
  static constexpr std::uint32_t kNever = 0xFFFFFFFFu;

  const std::vector<Event>& events_;
  const plan::Plan& plan_;
  std::uint32_t recompute_ = kNever;  // of the unit that is judged
  std::map<CallId, std::uint32_t> enter_;
  std::map<CallId, std::uint32_t> exit_;
  std::map<StorageId, std::uint32_t> alloc_;
  std::map<SaveId, std::uint32_t> unpack_;           // the first
  std::map<SaveId, std::set<std::uint32_t>> tasks_;  // the backwards in which it is unpacked
  std::map<StorageId, std::set<std::uint32_t>> written_;
  std::vector<std::string> violations_;
};

// What the file's figures cannot all be, whatever the device.
void say_contradictions(const plan::PlanFile& file, std::int64_t start_bytes, std::vector<std::string>& wrong) {
  const plan::PlanFacts& facts = file.facts;
  const bool is_searched =
      facts.termination == "fits" || facts.termination == "optimal" || facts.termination == "feasible";
  if (facts.bound_ps > facts.recompute_ps) wrong.emplace_back("the file's bound is above the time of its plan");
  if (facts.termination == "optimal" && facts.bound_ps != facts.recompute_ps)
    wrong.emplace_back("the file calls its plan optimal, and its bound is not the plan's time");
  if (facts.termination == "fits" && !file.plan.units.empty())
    wrong.emplace_back("the file says that the step fits without a plan, and it has " +
                       std::to_string(file.plan.units.size()) + " units");
  if (is_searched && (facts.smallest_peak_bytes < start_bytes || facts.smallest_peak_bytes > facts.peak_bytes))
    wrong.push_back("the file says that plans reach a peak of " + format_bytes_exact(facts.smallest_peak_bytes) +
                    ", which is not between the bytes at the start and its own peak");
}

}  // namespace

std::vector<std::string> find_violations(const Step& step, const plan::Plan& plan) { return Judge(step, plan).run(); }

Verdict verify_plan(const Step& step, const plan::PlanFile& file, const memory::WorkspaceTable* workspace) {
  Verdict verdict;
  verdict.budget_bytes = file.facts.budget_bytes - file.facts.reserve_bytes;
  verdict.violations = find_violations(step, file.plan);
  if (!verdict.violations.empty()) return verdict;
  Options options{.workspace = workspace,
                  .round_to_bytes = plan::rounding_of(file.facts.against, file.facts.rounding_bytes),
                  .is_detailed = false};
  Replayed replayed = replay(step, file.plan, options);
  if (replayed.peak_bytes > verdict.budget_bytes) {  // what comes at that moment has a name then
    options.is_detailed = true;
    replayed = replay(step, file.plan, options);
  }
  verdict.peak_bytes = replayed.peak_bytes;
  if (file.facts.against != "reserved" && replayed.peak_bytes != file.facts.peak_bytes)
    verdict.wrong_figures.push_back("the file says a peak of " + format_bytes_exact(file.facts.peak_bytes) +
                                    ", and it is " + format_bytes_exact(replayed.peak_bytes));
  if (replayed.start_bytes != file.facts.start_bytes)
    verdict.wrong_figures.push_back("the file says that the step begins with " +
                                    format_bytes_exact(file.facts.start_bytes) + ", and it does with " +
                                    format_bytes_exact(replayed.start_bytes));
  say_contradictions(file, replayed.start_bytes, verdict.wrong_figures);
  if (replayed.start_bytes > verdict.budget_bytes) {
    verdict.first_over = "what is there at the start, " + format_bytes_exact(replayed.start_bytes);
  } else {
    for (const Change& change : replayed.changes) {
      if (change.total_bytes <= verdict.budget_bytes) continue;
      verdict.first_over = "event " + std::to_string(change.event) + ": " + change.block + " (" + change.category +
                           ", " + format_bytes_exact(change.bytes) + ") makes it " +
                           format_bytes_exact(change.total_bytes);
      if (change.op.has_value()) verdict.first_over += " in " + std::string(step.text(step[change.op].name));
      if (change.unit) verdict.first_over += ", in a recompute";
      break;
    }
  }
  verdict.holds = verdict.first_over.empty();
  return verdict;
}

}  // namespace tidemark::verify
