#pragma once

#include <pthread.h>

#include <memory>
#include <system_error>

namespace croton {

/// The T of the calling thread that goes by `Tag`, made at its first use and deleted when the
/// thread ends. That of the main thread stays: thread_local objects go before the static ones of a
/// program, whose destructors may call functions. std::system_error where the system has no key
/// left.
template <class T, class Tag>
class PerThread {
 public:
  static T& get() {
    if (value_ == nullptr) [[unlikely]]
      make();
    return *value_;
  }

 private:
  static void make() {
    static const pthread_key_t key = [] {
      pthread_key_t made{};
      check(pthread_key_create(&made, destroy));
      return made;
    }();
    auto made = std::make_unique<T>();
    check(pthread_setspecific(key, made.get()));
    value_ = made.release();
  }
  /// Another destructor of the thread may ask for it again: then it is made anew.
  static void destroy(void* old) {
    value_ = nullptr;
    delete static_cast<T*>(old);
  }
  static void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category(), "data of a thread");
  }

  static inline thread_local T* value_ = nullptr;
};

template <class T, class Tag>
T& per_thread() {
  return PerThread<T, Tag>::get();
}

}  // namespace croton
