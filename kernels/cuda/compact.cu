#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

#include "kernels/cuda/compact.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/memory.h"

namespace tandem::TANDEM_GPU {
namespace {

#ifdef TANDEM_SIMT
auto policy_of(cudaStream_t) { return thrust::cpp::par; }
template <typename Call>
void queue(cudaStream_t stream, const Call& call) {
  simt::enqueue(stream, call);
}
#else
auto policy_of(cudaStream_t stream) { return thrust::cuda::par_nosync.on(stream); }
template <typename Call>
void queue(cudaStream_t, const Call& call) {
  call();  // queues its kernels itself
}
#endif

struct Above {
  float bar;
  __host__ __device__ bool operator()(float logit) const { return logit > bar; }
};

}  // namespace

void gather_logits(float* out, const float* row, const TokenId* tokens, int count, cudaStream_t stream) {
  queue(stream, [=] { thrust::gather(policy_of(stream), tokens, tokens + count, row, out); });
}

int compact_above(TokenId* ids, float* values, const float* row, int vocabulary, float bar, cudaStream_t stream) {
  synchronize(stream);
  const auto entries = thrust::make_zip_iterator(thrust::make_counting_iterator(TokenId{0}), row);
  const auto kept = thrust::make_zip_iterator(ids, values);
  const auto end = thrust::copy_if(policy_of(stream), entries, entries + vocabulary, row, kept, Above{bar});
  return static_cast<int>(end - kept);
}

}  // namespace tandem::TANDEM_GPU
