#pragma once

#include "tidemark/report/cost_text.h"
#include "tidemark/report/text_layout.h"

namespace tidemark::cli {

// What the library's reports are laid out with; nothing that a command prints is wider than kMaxColumns, except a dump.
using report::count_of;
using report::display_width;
using report::elide;
using report::interval_text;
using report::kMaxColumns;
using report::ms;
using report::notes_text;
using report::percent;
using report::sources_text;
using report::Table;
using report::total_json;
using report::total_text;
using report::unpriced_json;
using report::unpriced_text;
using report::wrap;

}  // namespace tidemark::cli
