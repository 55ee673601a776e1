#pragma once

#include <pthread.h>

#include <memory>

namespace croton {

/// The T of the calling thread that goes by `Tag`, made at its first use and deleted when the
/// thread ends. That of the main thread stays: thread_local objects go before the static ones of a
/// program, whose destructors may call functions.
template <class T, class Tag>
T& per_thread() {
  static thread_local T* value = nullptr;
  if (value == nullptr) [[unlikely]] {
    static const pthread_key_t key = [] {
      pthread_key_t made{};
      pthread_key_create(&made, [](void* old) { delete static_cast<T*>(old); });
      return made;
    }();
    auto made = std::make_unique<T>();
    pthread_setspecific(key, made.get());
    value = made.release();
  }
  return *value;
}

}  // namespace croton
