#include "tidemark/planner/highs.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark::planner {

// The few functions of its C interface that are needed, declared as its documentation has them (version 1); HighsInt
// is 32 bits unless it was built otherwise, which is asked when it is loaded.
struct Highs::Library {
  using Int = std::int32_t;

  std::string path;
  void* handle = nullptr;
  void* (*create)() = nullptr;
  void (*destroy)(void*) = nullptr;
  const char* (*version)() = nullptr;
  Int (*version_major)() = nullptr;
  Int (*size_of_int)(const void*) = nullptr;
  Int (*set_bool)(void*, const char*, Int) = nullptr;
  Int (*set_int)(void*, const char*, Int) = nullptr;
  Int (*set_double)(void*, const char*, double) = nullptr;
  Int (*pass_mip)(void*, Int, Int, Int, Int, Int, double, const double*, const double*, const double*, const double*,
                  const double*, const Int*, const Int*, const double*, const Int*) = nullptr;
  Int (*read_model)(void*, const char*) = nullptr;
  Int (*columns)(const void*) = nullptr;
  Int (*rows)(const void*) = nullptr;
  Int (*run)(void*) = nullptr;
  Int (*model_status)(const void*) = nullptr;
  Int (*solution)(const void*, double*, double*, double*, double*) = nullptr;
  Int (*int_info)(const void*, const char*, Int*) = nullptr;
  Int (*int64_info)(const void*, const char*, std::int64_t*) = nullptr;
  Int (*double_info)(const void*, const char*, double*) = nullptr;
};

namespace {

using Int = std::int32_t;

// Of HiGHS, as numbers.
constexpr Int kOk = 0;
constexpr Int kError = -1;
constexpr Int kRowwise = 2;
constexpr Int kMinimise = 1;
constexpr Int kStatusEmpty = 6;
constexpr Int kStatusOptimal = 7;
constexpr Int kStatusInfeasible = 8;
constexpr Int kStatusUnboundedOrInfeasible = 9;
constexpr Int kFeasiblePoint = 2;

constexpr const char* kRemedy =
    "pip install highsbox (in the project's .venv: it is found there), or Debian's libhighs1, or name the library with "
    "--highs PATH; the methods exact, greedy, reference-policy and knapsack need no solver";

[[noreturn]] void refuse(std::string place, std::string problem, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = kRemedy});
}

// Not named bind: with a string among its arguments, std::bind would be the better match, and do nothing.
template <class Function>
void find_function(void* handle, const std::string& path, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (function == nullptr) refuse(path, fmt::format("the library has no function {}", name), "HiGHS 1.5 or later", {});
}

// One model in HiGHS, gone at the end.
template <class Library>
class Instance {
 public:
  explicit Instance(const Library& library) : library_(library), highs_(library.create()) {
    if (highs_ == nullptr) refuse(library.path, "HiGHS could not be started", {}, {});
  }
  ~Instance() { library_.destroy(highs_); }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  void* get() const { return highs_; }

  void set(const HighsOptions& options) {
    constexpr Int kMost = std::numeric_limits<Int>::max();
    library_.set_bool(highs_, "output_flag", 0);
    library_.set_int(highs_, "threads", 1);
    library_.set_int(highs_, "random_seed", 0);
    library_.set_double(highs_, "mip_rel_gap", options.relative_gap);
    library_.set_double(highs_, "mip_abs_gap", 0);
    library_.set_double(highs_, "mip_feasibility_tolerance", options.tolerance);
    library_.set_double(highs_, "primal_feasibility_tolerance", options.tolerance);
    library_.set_int(highs_, "mip_max_nodes", options.max_nodes > kMost ? kMost : static_cast<Int>(options.max_nodes));
  }

  LinearSolution run() {
    LinearSolution result;
    const Int status = library_.run(highs_);
    const Int model = library_.model_status(highs_);
    if (model == kStatusInfeasible || model == kStatusUnboundedOrInfeasible) {
      result.end = LinearEnd::kInfeasible;
      return result;
    }
    if (status == kError)
      throw Error({.kind = ErrorKind::kInternal,
                   .place = library_.path,
                   .problem = "HiGHS failed on a model",
                   .expected = {},
                   .got = fmt::format("its status {}", model),
                   .remedy = "please report this with the model (--write-mps)"});
    result.end = model == kStatusOptimal || model == kStatusEmpty ? LinearEnd::kOptimal : LinearEnd::kLimit;
    Int point = 0;
    library_.int_info(highs_, "primal_solution_status", &point);
    library_.double_info(highs_, "objective_function_value", &result.objective);
    // Without integers there is no tree, and the objective is its own bound.
    if (library_.double_info(highs_, "mip_dual_bound", &result.bound) != kOk || result.bound > result.objective)
      result.bound = result.objective;
    library_.int64_info(highs_, "mip_node_count", &result.nodes);
    if (result.nodes < 0 && result.end == LinearEnd::kOptimal) result.bound = result.objective;
    if (point != kFeasiblePoint) return result;
    result.values.resize(static_cast<std::size_t>(library_.columns(highs_)));
    std::vector<double> column_duals(result.values.size());
    std::vector<double> rows(static_cast<std::size_t>(library_.rows(highs_)));
    std::vector<double> row_duals(rows.size());
    library_.solution(highs_, result.values.data(), column_duals.data(), rows.data(), row_duals.data());
    return result;
  }

 private:
  const Library& library_;
  void* highs_;
};

}  // namespace

Highs::Highs(const std::vector<std::string>& paths) {
  auto library = std::make_shared<Library>();
  std::string reasons;
  for (const std::string& path : paths) {
    // It has threads of its own and is never unloaded.
    library->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    library->path = path;
    if (library->handle != nullptr) break;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps one message per thread.
    if (const char* reason = dlerror(); reason != nullptr)
      reasons += (reasons.empty() ? "" : "; ") + std::string(reason);
  }
  if (library->handle == nullptr)
    refuse("HiGHS", "the solver's library was not found", "the shared library of HiGHS",
           reasons.empty() ? "no place to look" : reasons);
  const auto get = [&](const char* name, auto& function) {
    find_function(library->handle, library->path, name, function);
  };
  get("Highs_create", library->create);
  get("Highs_destroy", library->destroy);
  get("Highs_version", library->version);
  get("Highs_versionMajor", library->version_major);
  get("Highs_getSizeofHighsInt", library->size_of_int);
  get("Highs_setBoolOptionValue", library->set_bool);
  get("Highs_setIntOptionValue", library->set_int);
  get("Highs_setDoubleOptionValue", library->set_double);
  get("Highs_passMip", library->pass_mip);
  get("Highs_readModel", library->read_model);
  get("Highs_getNumCol", library->columns);
  get("Highs_getNumRow", library->rows);
  get("Highs_run", library->run);
  get("Highs_getModelStatus", library->model_status);
  get("Highs_getSolution", library->solution);
  get("Highs_getIntInfoValue", library->int_info);
  get("Highs_getInt64InfoValue", library->int64_info);
  get("Highs_getDoubleInfoValue", library->double_info);
  if (library->version_major() != 1)
    refuse(library->path, "this is another version of HiGHS", "version 1", library->version());
  const Instance<Library> instance(*library);
  if (const Int size = library->size_of_int(instance.get()); size != sizeof(Int))
    refuse(library->path, "HiGHS was built with other integers", "integers of 4 bytes", fmt::format("{} bytes", size));
  library_ = std::move(library);
}

const std::string& Highs::path() const { return library_->path; }
std::string Highs::version() const { return library_->version(); }

LinearSolution Highs::solve(const LinearModel& model, const HighsOptions& options) const {
  std::vector<double> cost, lower, upper, row_lower, row_upper, factors;
  std::vector<Int> starts, indices, integrality;
  for (const Column& column : model.columns) {
    cost.push_back(column.cost);
    lower.push_back(column.lower);
    upper.push_back(column.upper);
    integrality.push_back(column.is_integer ? 1 : 0);
  }
  for (const Row& row : model.rows) {
    row_lower.push_back(row.lower);
    row_upper.push_back(row.upper);
    starts.push_back(static_cast<Int>(indices.size()));
    for (const Term& term : row.terms) {
      indices.push_back(static_cast<Int>(term.column));
      factors.push_back(term.factor);
    }
  }
  TIDEMARK_CHECK(indices.size() < std::size_t{1} << 31, "a model fits into HiGHS's integers");
  Instance<Library> instance(*library_);
  instance.set(options);
  const Int status = library_->pass_mip(
      instance.get(), static_cast<Int>(cost.size()), static_cast<Int>(row_lower.size()),
      static_cast<Int>(indices.size()), kRowwise, kMinimise, 0, cost.data(), lower.data(), upper.data(),
      row_lower.data(), row_upper.data(), starts.data(), indices.data(), factors.data(), integrality.data());
  TIDEMARK_CHECK(status != kError, "HiGHS takes the model");
  return instance.run();
}

LinearSolution Highs::solve_file(const std::string& path, const HighsOptions& options) const {
  Instance<Library> instance(*library_);
  instance.set(options);
  if (library_->read_model(instance.get(), path.c_str()) != kOk)
    throw Error({.kind = ErrorKind::kInput,
                 .place = path,
                 .problem = "HiGHS cannot read this model",
                 .expected = "an MPS or LP file",
                 .got = {},
                 .remedy = {}});
  return instance.run();
}

std::vector<std::string> system_highs() { return {"libhighs.so.1", "libhighs.so"}; }

}  // namespace tidemark::planner
