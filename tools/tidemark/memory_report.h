#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "console.h"
#include "tidemark/device/device.h"
#include "tidemark/memory/caching_allocator.h"
#include "tidemark/memory/timeline.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::cli {

enum class MemoryView { kCategory, kModule, kMoment };

// How bytes are asked for and handed out.
enum class AllocatorModel { kExact, kRounded, kCaching, kExpandable };
inline constexpr std::array<std::string_view, 4> kAllocatorNames = {"exact", "rounded", "caching", "expandable"};

// All that `tidemark memory` has to say, before it is words.
struct MemoryReport {
  std::int64_t rounding_bytes = 1;  // what sizes are rounded up to
  std::string file;
  std::string policy;
  MemoryView view = MemoryView::kCategory;
  std::size_t depth = 0;
  step::Step step;
  plan::Plan plan;
  std::string workspace_file;  // empty: none
  std::optional<memory::WorkspaceTable> workspace;
  AllocatorModel allocator = AllocatorModel::kExact;
  std::int64_t overhead_bytes = 0;               // declared: what the device takes beside tensors
  std::optional<device::Device> device;          // that it must fit, if one was named
  memory::Timeline timeline;                     // with its changes
  std::optional<memory::AllocatorUse> reserved;  // by the caching allocator, when it is asked for
};

// "backward, aten.mm.default in layers.0 (Linear), recomputing layers.0".
std::string moment_text(const MemoryReport& report, const memory::Moment& moment);

// What the figures leave out, one sentence each.
std::vector<std::string> not_counted(const MemoryReport& report);

// What the step's tensors make the allocator take from the device at most, and that with the declared overhead.
std::int64_t reserved_bytes(const MemoryReport& report);
std::int64_t device_bytes(const MemoryReport& report);

std::string memory_text(const MemoryReport& report, const Console& console);
Json memory_json(const MemoryReport& report);

// Every change as comma-separated values, with a line of headings.
std::string memory_csv(const MemoryReport& report);

// The totals of all changes as bars over a line of passes, with the peak marked.
std::string memory_chart(const MemoryReport& report);

}  // namespace tidemark::cli
