#pragma once

#include <span>
#include <string_view>

namespace tidemark::device {

// The files of data/devices, put into the library when it is built: it needs no file at run time.
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_devices();

}  // namespace tidemark::device
