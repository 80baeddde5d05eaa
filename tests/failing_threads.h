// pthread_create that fails on request: linked into a test, or preloaded into a program as failing_threads_library,
// where the environment asks for it and programs that it starts inherit it.
//
// LANESHIFT_FAILING_THREAD=3: in each process the third thread does not start; =3+: nor does any after it.
// LANESHIFT_FAILED_THREADS=FILE: a byte is appended for each thread that did not start.
// Thread-safety: threads started by all threads are counted; tell and ask from one thread.
#pragma once

namespace laneshift::tests {

// The n-th thread from now on does not start, n = 1, 2, …; with `for_good` none after it does, either.
void FailThread(int n, bool for_good);
// Back to normal. Whether one did not start.
bool StopFailingThreads();

}  // namespace laneshift::tests
