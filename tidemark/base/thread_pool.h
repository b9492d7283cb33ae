#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace tidemark {

// A fixed set of worker threads. Results must not depend on how many there are: give every task its own slot to
// write to, and combine the slots in order afterwards.
//
//   ThreadPool pool(4);
//   std::vector<Cost> costs(n);
//   pool.for_each_index(n, [&](std::size_t i) { costs[i] = price(ops[i]); });
class ThreadPool {
 public:
  // Zero threads means: run everything in the calling thread.
  explicit ThreadPool(std::size_t thread_count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t thread_count() const { return threads_.size(); }

  // Calls task(0) ... task(count - 1), each once, and returns when all are done. The calling thread works too, so a
  // task may itself call for_each_index. When tasks throw, all others still run and the exception of the smallest
  // index is rethrown.
  void for_each_index(std::size_t count, const std::function<void(std::size_t)>& task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tidemark
