// A program of the CUDA runtime with what such programs have and probes could break: variables of the device and of
// constant memory, set between launches by the host and by kernels, one of them of 1 GiB; several streams; in-place kernels; dynamic shared
// memory; a cooperative launch; a captured graph; printf; and what cannot be probed (managed variables, a table of
// functions).
//
//     runtime_program [ROUNDS]        one line a part: its name, a checksum of what the device left, ok or WRONG
//
// Each part is computed on the host too, in integers, so that there is one right answer. Exit status: 0 if all parts
// are right, 1 if one is not, 2 if a call failed. The output is the same for the same ROUNDS, with probes or without.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                            \
    do {                                                                                                       \
        cudaError_t code = (call);                                                                             \
        if (code != cudaSuccess) {                                                                             \
            fprintf(stderr, "runtime_program:%d: %s: %s\n", __LINE__, #call, cudaGetErrorString(code));        \
            exit(2);                                                                                           \
        }                                                                                                      \
    } while (0)

const int N = 1 << 18, THREADS = 256, BLOCKS = N / THREADS, BINS = 64;

// FNV-1a over the words, so that order counts.
static uint64_t checksum(const std::vector<uint32_t> &words) {
    uint64_t hash = 0xcbf29ce484222325;
    for (uint32_t word : words) hash = (hash ^ word) * 0x100000001b3;
    return hash;
}

static bool all_right = true;

static void part(const char *name, const std::vector<uint32_t> &found, const std::vector<uint32_t> &expected) {
    bool right = found == expected;
    all_right &= right;
    printf("%s\t%016llx\t%s\n", name, (unsigned long long)checksum(found), right ? "ok" : "WRONG");
}

static uint32_t *allocate(size_t words) {
    uint32_t *memory;
    CHECK(cudaMalloc(&memory, words * 4));
    CHECK(cudaMemset(memory, 0, words * 4));
    return memory;
}

static std::vector<uint32_t> fetch(const uint32_t *memory, size_t words) {
    std::vector<uint32_t> host(words);
    CHECK(cudaMemcpy(host.data(), memory, words * 4, cudaMemcpyDeviceToHost));
    return host;
}

static std::vector<uint32_t> numbers(uint32_t seed) {
    std::vector<uint32_t> words(N);
    for (uint32_t &word : words) word = seed = seed * 1664525 + 1013904223;
    return words;
}

// Constants and variables: the host sets `factors` and `offset` between launches, and `bump` sets `offset` as well.
__constant__ uint32_t factors[4];
__device__ uint32_t offset = 5;
static __device__ uint32_t launches;

__global__ void scale(const uint32_t *in, uint32_t *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) atomicAdd(&launches, 1);
    if (i < n) out[i] += in[i] * factors[i & 3] + offset;
}

__global__ void bump() { offset = offset * 3 + 1; }

static void variables(int rounds) {
    std::vector<uint32_t> in = numbers(1), expected(N);
    uint32_t *device_in = allocate(N), *out = allocate(N), host_offset = 5;
    CHECK(cudaMemcpy(device_in, in.data(), N * 4, cudaMemcpyHostToDevice));
    for (int round = 0; round < rounds; round++) {
        uint32_t now[4] = {round + 1u, round + 2u, round * 7u, 0x80000001u};
        CHECK(cudaMemcpyToSymbol(factors, now, sizeof now));
        if (round % 4 == 2) {
            host_offset = 1000 + round;
            CHECK(cudaMemcpyToSymbol(offset, &host_offset, 4));
        }
        scale<<<BLOCKS, THREADS>>>(device_in, out, N);
        bump<<<1, 1>>>();
        for (int i = 0; i < N; i++) expected[i] += in[i] * now[i & 3] + host_offset;
        host_offset = host_offset * 3 + 1;
    }
    part("variables", fetch(out, N), expected);
    std::vector<uint32_t> read(2);
    CHECK(cudaMemcpyFromSymbol(&read[0], offset, 4));
    CHECK(cudaMemcpyFromSymbol(&read[1], launches, 4));
    part("read back", read, {host_offset, (uint32_t)rounds});
}

// A constant that a kernel writes by its address, as the driver gives it, between launches that read it; the host writes
// it too, and another kernel a variable that is a struct.
__constant__ uint32_t wheel[8];
struct Pair {
    uint32_t turns;
    unsigned char spokes[12];
};
__device__ Pair pair;

__global__ void turn(uint32_t *address) {
    int i = threadIdx.x;
    uint32_t next = address[(i + 1) % 8];
    __syncthreads();
    address[i] = next * 3 + i;
    if (i < 12) pair.spokes[i] += i;
    if (i == 0) pair.turns++;
}

__global__ void ride(uint32_t *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = out[i] * 31 + wheel[i & 7] + pair.turns;
}

static void constants(int rounds) {
    std::vector<uint32_t> expected(N), now(8);
    uint32_t *out = allocate(N), *address;
    cudaStream_t stream;
    Pair host = {7, {1, 2, 3}};
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaGetSymbolAddress((void **)&address, wheel));
    CHECK(cudaMemcpyToSymbolAsync(pair, &host, sizeof host, 0, cudaMemcpyHostToDevice, stream));
    for (int round = 0; round < rounds; round++) {
        if (round % 3 == 0) {
            for (int i = 0; i < 8; i++) now[i] = round * 100 + i;
            CHECK(cudaMemcpyToSymbolAsync(wheel, now.data(), 32, 0, cudaMemcpyHostToDevice, stream));
        }
        turn<<<1, 8, 0, stream>>>(address);
        ride<<<BLOCKS, THREADS, 0, stream>>>(out, N);
        std::vector<uint32_t> before = now;
        for (int i = 0; i < 8; i++) now[i] = before[(i + 1) % 8] * 3 + i, host.spokes[i] += i;
        host.turns++;
        for (int i = 0; i < N; i++) expected[i] = expected[i] * 31 + now[i & 7] + host.turns;
    }
    CHECK(cudaStreamSynchronize(stream));
    part("written constant", fetch(out, N), expected);
    Pair read;
    std::vector<uint32_t> left(8);
    CHECK(cudaMemcpyFromSymbol(&read, pair, sizeof read));
    CHECK(cudaMemcpyFromSymbol(left.data(), wheel, 32));
    part("constant read back", left, now);
    std::vector<uint32_t> spokes(read.spokes, read.spokes + 12), wanted(host.spokes, host.spokes + 12);
    spokes.push_back(read.turns), wanted.push_back(host.turns);
    part("struct read back", spokes, wanted);
    CHECK(cudaStreamDestroy(stream));
}

// A variable of 1 GiB exists once: the first launch of a kernel that uses it takes no second one. (Its module is loaded with
// it; what probes need of memory, they have since the launches before.)
const size_t BIG = 1u << 28;
__device__ uint32_t big[BIG];

__global__ void fill_big(uint32_t salt) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < 4096) big[i * (BIG / 4096)] += i * salt;
}

static void large(int rounds) {
    size_t before, after, all;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemGetInfo(&before, &all));
    std::vector<uint32_t> found(4096), expected(4096);
    for (int round = 0; round < rounds; round++) {
        fill_big<<<16, THREADS>>>(round + 1);
        for (uint32_t i = 0; i < 4096; i++) expected[i] += i * (round + 1);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemGetInfo(&after, &all));
    uint32_t *address;
    CHECK(cudaGetSymbolAddress((void **)&address, big));
    for (size_t i = 0; i < 4096; i++) CHECK(cudaMemcpy(&found[i], address + i * (BIG / 4096), 4, cudaMemcpyDeviceToHost));
    part("large variable", found, expected);
    part("its memory", {before > after && before - after > BIG * 2}, {0});
}

// Streams: each has data of its own, changed in place again and again; one sets a constant in stream order.
__constant__ uint32_t key;

template <typename Mix> __global__ void churn(uint32_t *data, int n, Mix mix) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = mix(data[i], i);
}

struct WithKey {
    __device__ uint32_t operator()(uint32_t x, uint32_t i) const { return (x ^ key) * 2654435761u + i; }
};
struct Plain {
    uint32_t salt;
    __host__ __device__ uint32_t operator()(uint32_t x, uint32_t i) const { return (x << 5 | x >> 27) + salt * i; }
};

static void streams(int rounds) {
    const int STREAMS = 4;
    cudaStream_t stream[STREAMS];
    uint32_t *data[STREAMS], *keys;
    std::vector<std::vector<uint32_t>> expected;
    CHECK(cudaMallocHost(&keys, rounds * 4));
    for (int s = 0; s < STREAMS; s++) {
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        expected.push_back(numbers(100 + s));
        data[s] = allocate(N);
        CHECK(cudaMemcpy(data[s], expected[s].data(), N * 4, cudaMemcpyHostToDevice));
    }
    CHECK(cudaDeviceSynchronize());
    for (int round = 0; round < rounds; round++) {
        keys[round] = 0x9e3779b9u * (round + 1);
        CHECK(cudaMemcpyToSymbolAsync(key, &keys[round], 4, 0, cudaMemcpyHostToDevice, stream[0]));
        churn<<<BLOCKS, THREADS, 0, stream[0]>>>(data[0], N, WithKey());
        for (int s = 1; s < STREAMS; s++) churn<<<BLOCKS, THREADS, 0, stream[s]>>>(data[s], N, Plain{(uint32_t)round * s});
        for (int i = 0; i < N; i++) {
            expected[0][i] = (expected[0][i] ^ keys[round]) * 2654435761u + i;
            for (int s = 1; s < STREAMS; s++) expected[s][i] = Plain{(uint32_t)round * s}(expected[s][i], i);
        }
    }
    CHECK(cudaDeviceSynchronize());
    for (int s = 0; s < STREAMS; s++) {
        char name[16];
        snprintf(name, sizeof name, "stream %d", s);
        part(name, fetch(data[s], N), expected[s]);
        CHECK(cudaStreamDestroy(stream[s]));
    }
    CHECK(cudaFreeHost(keys));
}

// A table of the module, counted into by atomics, and read by a second kernel through shared memory that is asked for
// at the launch, more than a kernel has without asking.
__device__ uint32_t bins[BINS];

__global__ void count(const uint32_t *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] >> 26], 1);
}

__global__ void running(uint32_t *out) {
    extern __shared__ uint32_t scratch[];
    for (int i = threadIdx.x; i < 16384; i += blockDim.x) scratch[i] = bins[i % BINS];
    __syncthreads();
    uint32_t sum = 0;
    for (int i = 0; i <= (int)threadIdx.x; i++) sum += scratch[i * BINS + i];
    out[threadIdx.x] = sum;
}

static void histogram(int rounds) {
    std::vector<uint32_t> in = numbers(7), host(BINS), expected(BINS);
    uint32_t *device_in = allocate(N), *out = allocate(BINS);
    CHECK(cudaMemcpy(device_in, in.data(), N * 4, cudaMemcpyHostToDevice));
    CHECK(cudaFuncSetAttribute(running, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    for (int round = 0; round < rounds; round++) count<<<64, THREADS>>>(device_in, N);
    running<<<1, BINS, 65536>>>(out);
    for (uint32_t word : in) host[word >> 26] += rounds;
    for (int i = 0, sum = 0; i < BINS; i++) expected[i] = sum += host[i];
    part("histogram", fetch(out, BINS), expected);
}

// All blocks of a cooperative launch wait for each other: none may be left out because the others fill the device.
__device__ void everybody(uint32_t *arrived, uint32_t target) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile uint32_t *)arrived < target) {}
        __threadfence();
    }
    __syncthreads();
}

__global__ void relay(uint32_t *data, uint32_t *arrived, int steps) {
    uint32_t me = blockIdx.x, all = gridDim.x;
    for (int step = 0; step < steps; step++) {
        uint32_t next = *(volatile uint32_t *)&data[(me + 1) % all];
        everybody(arrived, all * (2 * step + 1));
        if (threadIdx.x == 0) data[me] = next + me;
        everybody(arrived, all * (2 * step + 2));
    }
}

static void cooperative(int rounds) {
    uint32_t *data = allocate(32), *arrived = allocate(1);
    std::vector<uint32_t> expected(32);
    void *arguments[] = {&data, &arrived, &rounds};
    CHECK(cudaLaunchCooperativeKernel((void *)relay, 32, 64, arguments));
    for (int step = 0; step < rounds; step++) {
        std::vector<uint32_t> before = expected;
        for (int i = 0; i < 32; i++) expected[i] = before[(i + 1) % 32] + i;
    }
    part("cooperative", fetch(data, 32), expected);
}

// Captured once, replayed often.
static void graph(int rounds) {
    std::vector<uint32_t> expected = numbers(9);
    uint32_t *data = allocate(N);
    cudaStream_t stream;
    cudaGraph_t captured;
    cudaGraphExec_t replayed;
    CHECK(cudaMemcpy(data, expected.data(), N * 4, cudaMemcpyHostToDevice));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    churn<<<BLOCKS, THREADS, 0, stream>>>(data, N, Plain{3});
    churn<<<BLOCKS, THREADS, 0, stream>>>(data, N, Plain{4});
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&replayed, captured, 0));
    for (int round = 0; round < rounds; round++) CHECK(cudaGraphLaunch(replayed, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < N; i++) expected[i] = Plain{4}(Plain{3}(expected[i], i), i);
    part("graph", fetch(data, N), expected);
    CHECK(cudaGraphExecDestroy(replayed));
    CHECK(cudaGraphDestroy(captured));
    CHECK(cudaStreamDestroy(stream));
}

// What runs as it is: a managed variable, and functions whose addresses lie in memory.
__managed__ uint32_t shared_with_host = 1;

__global__ void twice() { shared_with_host *= 2; }

typedef uint32_t Function(uint32_t);
__device__ __noinline__ uint32_t add_one(uint32_t x) { return x + 1; }
__device__ __noinline__ uint32_t times_ten(uint32_t x) { return x * 10; }
__device__ Function *table[2] = {add_one, times_ten};

__global__ void dispatch(uint32_t *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = table[data[i] & 1](data[i]);
}

static void unprobed(int rounds) {
    std::vector<uint32_t> expected = numbers(11);
    uint32_t *data = allocate(N), host = 1;
    CHECK(cudaMemcpy(data, expected.data(), N * 4, cudaMemcpyHostToDevice));
    for (int round = 0; round < rounds; round++) {
        twice<<<1, 1>>>();
        CHECK(cudaDeviceSynchronize());
        shared_with_host += round;
        host = host * 2 + round;
        dispatch<<<BLOCKS, THREADS>>>(data, N);
        for (uint32_t &word : expected) word = word & 1 ? word * 10 : word + 1;
    }
    CHECK(cudaDeviceSynchronize());
    part("managed", {shared_with_host}, {host});
    part("functions", fetch(data, N), expected);
}

__global__ void hello(int round) { printf("hello from round %d\n", round); }

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 12;
    variables(rounds);
    constants(rounds);
    large(rounds);
    streams(rounds);
    histogram(rounds);
    cooperative(rounds);
    graph(rounds);
    unprobed(rounds);
    fflush(stdout);
    for (int round = 0; round < 2; round++) hello<<<1, 1>>>(round);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGetLastError());
    return all_right ? 0 : 1;
}
