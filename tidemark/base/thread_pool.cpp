#include "tidemark/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>

namespace tidemark {

namespace {

// One call of for_each_index. Workers that arrive after the last index was taken find nothing to do, so the call
// need not wait for them: the shared state outlives it.
struct Loop {
  Loop(std::size_t n, const std::function<void(std::size_t)>& f) : count(n), task(&f) {}

  void run() {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      std::exception_ptr error;
      try {
        (*task)(i);
      } catch (...) {
        error = std::current_exception();
      }
      const std::scoped_lock lock(mutex);
      if (error && i < first_failed) {
        first_failed = i;
        first_error = error;
      }
      if (++finished == count) done.notify_all();
    }
  }

  void wait() {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return finished == count; });
    if (first_error) std::rethrow_exception(first_error);
  }

  const std::size_t count;
  const std::function<void(std::size_t)>* task;  // touched only while an index is left, that is, during the call
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::condition_variable done;
  std::size_t finished = 0;
  std::size_t first_failed = static_cast<std::size_t>(-1);
  std::exception_ptr first_error;
};

}  // namespace

ThreadPool::ThreadPool(std::size_t thread_count) {
  threads_.reserve(thread_count);
  for (std::size_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
}

void ThreadPool::work() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    job();
  }
}

void ThreadPool::for_each_index(std::size_t count, const std::function<void(std::size_t)>& task) {
  if (count == 0) return;
  const auto loop = std::make_shared<Loop>(count, task);
  {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < std::min(threads_.size(), count - 1); ++i) queue_.emplace_back([loop] { loop->run(); });
  }
  ready_.notify_all();
  loop->run();
  loop->wait();
}

}  // namespace tidemark
