#pragma once

#include <string>
#include <string_view>

#include "tidemark/verify/certificate.h"

namespace tidemark::verify {

// The text of a certificate's file: the same bytes for the same certificate on every machine.
std::string write_certificate(const Certificate& certificate);

// `name` stands for the file in errors. Throws: Error for a file that is no certificate, or that was changed by hand.
Certificate read_certificate_text(std::string_view text, const std::string& name);
Certificate read_certificate(const std::string& path);

// Where the certificate of a plan's file lies: plan.json has plan.certificate.json beside it.
std::string certificate_path(const std::string& plan_path);

}  // namespace tidemark::verify
