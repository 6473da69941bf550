// Runs the micro-benchmarks and speaks the workload protocol beside Google Benchmark's own output.
//
// Standard output is Google Benchmark's (JSON with --benchmark_format=json), so the events go only to the
// descriptors of TIDEMARK_CHECKPOINT_FDS, when there are any. The active allocator also stands in the
// JSON's context. A wrong argument ends with exit code 2, as in every workload.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <optional>

#include "common/exits.h"
#include "common/session.h"

int main(int argc, char** argv) {
  tidemark::set_program_name("micro");
  benchmark::Initialize(&argc, argv);
  if (argc > 1) tidemark::fail_usage("there is an argument that Google Benchmark does not know");
  const tidemark::Adapter adapter = tidemark::find_adapter();
  benchmark::AddCustomContext("malloc_object", adapter.malloc_object);
  benchmark::AddCustomContext("adapter", adapter.name);
  std::optional<tidemark::Session> session;
  if (std::getenv("TIDEMARK_CHECKPOINT_FDS") != nullptr) session.emplace("micro");
  const std::size_t ran = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (ran == 0) tidemark::fail_usage("no benchmark matches the filter");
  // Iterations are Google Benchmark's to choose, so there is no checksum that a run must reproduce.
  return session ? session->end(0, ran) : 0;
}
