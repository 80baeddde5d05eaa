// ThreadFamine: while it lives, no thread of this process can be started. For tests.
//
// Every new thread is to have a stack as large as the address space, which the host cannot give: the same refusal as at
// a limit on processes, which root does not have, or on memory, of which a sanitizer needs more than any limit.
#pragma once

#include <pthread.h>

#include "base/check.h"

namespace laneshift::base {

class ThreadFamine {
 public:
  ThreadFamine() {
    LS_CHECK(pthread_getattr_default_np(&before_) == 0, "the usual stack size is unknown");
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    LS_CHECK(pthread_attr_setstacksize(&attributes, size_t{1} << 47) == 0, "the stack size is refused");
    LS_CHECK(pthread_setattr_default_np(&attributes) == 0, "the usual stack size cannot be set");
    pthread_attr_destroy(&attributes);
  }
  ~ThreadFamine() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  ThreadFamine(const ThreadFamine&) = delete;
  ThreadFamine& operator=(const ThreadFamine&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace laneshift::base
