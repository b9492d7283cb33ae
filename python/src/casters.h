#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "tidemark/base/id.h"

// An id is an int in Python. An argument declared with .none() also takes None, for "none".
template <class Tag>
struct nanobind::detail::type_caster<tidemark::Id<Tag>> {
  NB_TYPE_CASTER(tidemark::Id<Tag>, const_name("int"))

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    value = {};
    if (source.is_none()) return true;
    make_caster<std::uint32_t> position;
    if (!position.from_python(source, flags, cleanup)) return false;
    value = tidemark::Id<Tag>(position.value);
    return value.has_value();
  }

  static handle from_cpp(tidemark::Id<Tag> id, rv_policy, cleanup_list*) noexcept {
    return id.is_none() ? none().release() : handle(PyLong_FromUnsignedLong(id.value()));
  }
};

namespace tidemark::python {

// For a result that may be none: typed as `int | None`.
template <class Tag>
std::optional<std::uint32_t> optional(Id<Tag> id) {
  return id.is_none() ? std::nullopt : std::optional(id.value());
}

}  // namespace tidemark::python
