#pragma once

#include <memory>
#include <mutex>

#include "runtime/device.h"
#include "runtime/worker.h"

namespace croton {

/// The way from a context to others: a queue and a worker for the copies that leave it, beside
/// those for its steps, so that neither stands still for the other.
class Link {
 public:
  explicit Link(Device& device) : device_(device), queue_(device.new_queue()) {}

  Device& device() const { return device_; }
  Queue& queue() const { return *queue_; }
  std::mutex& queue_mutex() { return queue_mutex_; }
  Worker& worker() { return worker_; }

 private:
  Device& device_;
  const std::unique_ptr<Queue> queue_;
  std::mutex queue_mutex_;
  Worker worker_;  // ends first
};

}  // namespace croton
