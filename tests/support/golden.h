#pragma once

#include <string>

namespace tidemark::test {

// Compares `text` with tests/golden/<name>. `./test --accept` (which sets TIDEMARK_ACCEPT=1) rewrites the file instead;
// look at the difference before you commit it.
void expect_golden(const std::string& name, const std::string& text);

}  // namespace tidemark::test
