#include "shake_step.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "random.h"
#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace tidemark::test {

namespace {

using Lines = std::vector<std::string>;

// The step as a file: events are easily moved there, and the reader says what is still a step.
struct File {
  Lines before;  // with the passes, without the header of the events
  Lines events;
  Lines after;
};

File split(const std::string& text) {
  File file;
  std::istringstream stream(text);
  Lines* part = &file.before;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(R"({"section":"events")")) {
      part = &file.events;
      continue;
    }
    if (part == &file.events && line.starts_with("{")) part = &file.after;
    part->push_back(line);
  }
  return file;
}

std::string join(const File& file) {
  std::ostringstream text;
  for (const std::string& line : file.before) text << line << '\n';
  text << R"({"section":"events","count":)" << file.events.size() << "}\n";
  for (const std::string& line : file.events) text << line << '\n';
  for (const std::string& line : file.after) text << line << '\n';
  return text.str();
}

void move_event(Lines& events, Random& random) {
  const auto count = static_cast<std::int64_t>(events.size());
  const std::int64_t from = random.between(0, count - 1);
  const std::int64_t to = std::clamp<std::int64_t>(from + random.between(-8, 8), 0, count - 1);
  const std::string event = events[static_cast<std::size_t>(from)];
  events.erase(events.begin() + from);
  events.insert(events.begin() + to, event);
}

// An event of the kind, or the end.
Lines::iterator any(Lines& events, const std::string& kind, Random& random) {
  std::vector<Lines::iterator> found;
  for (auto it = events.begin(); it != events.end(); ++it)
    if (it->starts_with("[\"" + kind + "\"")) found.push_back(it);
  return found.empty() ? events.end() : random.pick(found);
}

// A save is packed inside the op that follows, as an op does that is recorded as one but made of others.
void pack_inside(Lines& events, Random& random) {
  const auto pack = any(events, "pack", random);
  const auto begin = std::find_if(pack, events.end(), [](const std::string& e) { return e.starts_with("[\"begin\""); });
  if (begin != events.end()) std::rotate(pack, pack + 1, begin + 1);
}

// The graph of a save dies in the forward.
void release_early(Lines& events, Random& random) {
  const auto pack = any(events, "pack", random);
  if (pack == events.end()) return;
  const std::string id = pack->substr(std::string("[\"pack\"").size());
  const auto position = pack - events.begin();
  std::erase(events, "[\"unpack\"" + id);
  std::erase(events, "[\"drop\"" + id);
  std::erase(events, "[\"release\"" + id);
  const auto room = static_cast<std::int64_t>(events.size()) - position;
  events.insert(events.begin() + position + std::min<std::int64_t>(room, random.between(1, 6)), "[\"release\"" + id);
}

// A node asks for a tensor twice.
void unpack_twice(Lines& events, Random& random) {
  const auto unpack = any(events, "unpack", random);
  if (unpack == events.end()) return;
  const std::string event = *unpack;
  const std::string drop = "[\"drop\"" + event.substr(std::string("[\"unpack\"").size());
  events.insert(unpack, event);
  const auto first_drop = std::find(events.begin(), events.end(), drop);
  if (first_drop != events.end()) events.insert(first_drop, drop);
}

void change_pass(Lines& lines, Random& random) {
  static const Lines kKinds = {"forward", "loss", "recompute"};
  const auto pass = any(lines, random.pick(kKinds), random);
  if (pass != lines.end()) *pass = "[\"" + random.pick(kKinds) + "\"" + pass->substr(pass->find(','));
}

}  // namespace

step::Step shake(const step::Step& step, std::uint64_t seed) {
  Random random(seed);
  step::Step shaken = step;
  File file = split(step::step_text(step));
  for (std::int64_t tries = random.between(0, 8); tries > 0 && !file.events.empty(); --tries) {
    File next = file;
    switch (random.below(8)) {
      case 0:
        release_early(next.events, random);
        break;
      case 1:
        unpack_twice(next.events, random);
        break;
      case 2:
        change_pass(next.before, random);
        break;
      case 3:
        pack_inside(next.events, random);
        break;
      default:
        move_event(next.events, random);
        break;
    }
    try {
      shaken = step::parse_step(join(next));
    } catch (const Error&) {
      continue;  // no step any more: another try
    }
    file = std::move(next);
  }
  return shaken;
}

}  // namespace tidemark::test
