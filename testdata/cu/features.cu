// Shapes of PTX that bench/kernels.cu does not have: device functions that stay calls, recursion, function pointers,
// printf, constants and globals, dynamic shared memory, switch tables, early exits, traps, local arrays, launch
// bounds, clusters, kernels without parameters, by-value structs.
#include <cstdint>
#include <cstdio>

__constant__ float table[64];
__device__ int counter;
extern __shared__ float dynamic[];

struct Config {
    float scale;
    int3 shape;
    char tag;
};

__device__ __noinline__ float polynomial(float x, const float *c, int n) {
    float y = 0;
    for (int i = n - 1; i >= 0; i--) y = y * x + c[i];
    return y;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ __noinline__ void leave_if(bool c) {
    if (c) asm volatile("exit;");
}

typedef float (*Unary)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ Unary operations[2] = {twice, square};

extern "C" __global__ void no_parameters() {}

extern "C" __global__ void calls(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = polynomial(in[i], table, 64) + fibonacci(i & 7);
}

extern "C" __global__ void exits_in_callee(int *out) {
    leave_if(threadIdx.x & 1);
    out[threadIdx.x] = 1;
}

extern "C" __global__ void through_pointers(float *data, int which) { data[threadIdx.x] = operations[which & 1](data[threadIdx.x]); }

extern "C" __global__ void prints(int x) {
    if (threadIdx.x == 0) printf("x = %d, counter = %d\n", x, atomicAdd(&counter, 1));
}

extern "C" __global__ void __launch_bounds__(128, 4) by_value(Config config, float *out, char byte) {
    dynamic[threadIdx.x] = config.scale * byte;
    __syncthreads();
    out[threadIdx.x] = dynamic[(threadIdx.x + config.shape.y) % blockDim.x] + config.tag;
}

extern "C" __global__ void switches(const int *op, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = out[i];
    switch (op[i]) {
        case 0: v += 1; break;
        case 1: v *= 3; break;
        case 2: v ^= 0x55; break;
        case 3: v = v << 3 | v >> 29; break;
        case 4: v = __popc(v); break;
        case 5: v = __clz(v); break;
        case 6: v = -v; break;
        case 7: v = v / (i + 1); break;
        default: __trap();
    }
    out[i] = v;
}

extern "C" __global__ void local_array(const int *index, float *out) {
    float values[32];
    for (int i = 0; i < 32; i++) values[i] = out[i * 32 + threadIdx.x];
    float sum = 0;
    for (int i = 0; i < 32; i++) sum += values[index[i] & 31];
    out[threadIdx.x] = sum;
}

template <class T> __global__ void axpy(T a, const T *x, T *y, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) y[i] += a * x[i];
}
template __global__ void axpy(float, const float *, float *, size_t);
template __global__ void axpy(double, const double *, double *, size_t);

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(unsigned *out) {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x] = rank;
}
#endif
