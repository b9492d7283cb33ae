#pragma once

// Everything the library offers.

#include "tidemark/base/atomic_file.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/base/thread_pool.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/step.h"
#include "tidemark/step/step_builder.h"
#include "tidemark/step/summary.h"
#include "tidemark/step/write_step.h"
#include "tidemark/version.h"
