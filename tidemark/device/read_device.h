#pragma once

#include <string>
#include <string_view>

#include "tidemark/device/device.h"

namespace tidemark::device {

inline constexpr std::size_t kMaxDeviceFileBytes = 32 << 20;

// Reads a device file (docs/device_format.md). Throws: Error naming the file and the field, when it cannot be read, is
// no device file, or leaves out, repeats or contradicts something.
Device read_device(const std::string& path);

// The same from text; `name` stands for the file in errors.
Device parse_device(std::string_view text, const std::string& name = "device");

}  // namespace tidemark::device
