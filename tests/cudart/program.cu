// program.cu - a whole program for the CUDA runtime: tests/driver/runtime.c has nvcc compile it, and runs it.
#include <cstdio>
#include <cuda/atomic>

static int wrong;
static void check(bool good, const char *what) {
    if (!good) printf("WRONG %s\n", what), wrong++;
}
static void fine(cudaError_t e, const char *what) {
    if (e) printf("WRONG %s: %s\n", what, cudaGetErrorString(e)), wrong++;
}

__constant__ int scale[4];
__device__ int total;
__device__ int table[3] = {2, 3, 5};

template <class T> __global__ void scaled(T *out, const T *in, int n) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) out[k] = in[k] * scale[k & 3] + table[k % 3];
}

__global__ void sum(const int *in, int n) {
    extern __shared__ int part[];
    int s = 0;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) s += in[k];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int step = blockDim.x / 2; step; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (!threadIdx.x) atomicAdd(&total, part[0]);
}

// Sums before each element: blocks publish a state and a sum in one word, and look back at those before them.
__global__ void chained(int *out, const int *in, int n, unsigned long long *state, unsigned *ticket) {
    __shared__ int warps[8], before;
    __shared__ unsigned tile;
    if (!threadIdx.x) tile = atomicAdd(ticket, 1u);
    __syncthreads();
    int k = (int)(tile * blockDim.x + threadIdx.x), x = k < n ? in[k] : 0, s = x, lane = threadIdx.x & 31;
    for (int d = 1; d < 32; d *= 2) {
        int y = __shfl_up_sync(~0u, s, d);
        if (lane >= d) s += y;
    }
    if (lane == 31) warps[threadIdx.x / 32] = s;
    __syncthreads();
    for (int w = 0; w < (int)threadIdx.x / 32; w++) s += warps[w];
    if (!threadIdx.x) {
        int all = 0, sum = 0;
        for (unsigned w = 0; w < blockDim.x / 32; w++) all += warps[w];
        using word = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
        if (tile) word(state[tile]).store(1ull << 32 | (unsigned)all, cuda::memory_order_relaxed);
        for (int t = (int)tile - 1; t >= 0; t--) {
            unsigned long long v;
            while (!((v = word(state[t]).load(cuda::memory_order_relaxed)) >> 32)) {}
            sum += (int)(unsigned)v;
            if (v >> 32 == 2) break;
        }
        word(state[tile]).store(2ull << 32 | (unsigned)(sum + all), cuda::memory_order_relaxed);
        before = sum;
    }
    __syncthreads();
    if (k < n) out[k] = before + s;
}

int main() {
    enum { N = 10000 };
    static int in[N], out[N], want;
    int *a, *b, factors[4] = {1, 2, 3, 4}, blocks = 0, device = -1;
    unsigned long long *state;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaFuncAttributes attributes;
    cudaDeviceProp properties;
    for (int k = 0; k < N; k++) in[k] = k * 7 % 101;
    fine(cudaGetDevice(&device), "device");
    fine(cudaGetDeviceProperties(&properties, 0), "properties");
    check(device == 0 && properties.major == 9 && properties.warpSize == 32, "properties");
    fine(cudaMalloc(&a, sizeof in), "malloc");
    fine(cudaMalloc(&b, sizeof in), "malloc");
    fine(cudaMalloc(&state, (N / 256 + 2) * 8), "malloc");
    fine(cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice), "copy");
    fine(cudaMemcpyToSymbol(scale, factors, sizeof factors), "symbol");
    fine(cudaStreamCreate(&stream), "stream");
    fine(cudaEventCreate(&begin), "event");
    fine(cudaEventCreate(&end), "event");
    fine(cudaEventRecord(begin, stream), "record");
    scaled<<<(N + 255) / 256, 256, 0, stream>>>(b, a, N);
    fine(cudaGetLastError(), "scaled");
    fine(cudaEventRecord(end, stream), "record");
    fine(cudaMemcpyAsync(out, b, sizeof out, cudaMemcpyDeviceToHost, stream), "copy");
    fine(cudaStreamSynchronize(stream), "synchronise");
    const int primes[] = {2, 3, 5};
    for (int k = 0; k < N; k++) wrong += out[k] != in[k] * factors[k & 3] + primes[k % 3];
    sum<<<3, 128, 128 * sizeof(int)>>>(a, N);
    int result;
    fine(cudaMemcpyFromSymbol(&result, total, sizeof result), "symbol");
    for (int k = 0; k < N; k++) want += in[k];
    check(result == want, "sum");
    fine(cudaMemset(state, 0, (N / 256 + 2) * 8), "memset");
    chained<<<(N + 255) / 256, 256>>>(b, a, N, state, (unsigned *)(state + N / 256 + 1));
    fine(cudaMemcpy(out, b, sizeof out, cudaMemcpyDeviceToHost), "copy");
    for (int k = 0, s = 0; k < N; k++) wrong += out[k] != (s += in[k]);
    fine(cudaFuncGetAttributes(&attributes, sum), "attributes");
    fine(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 128, 512), "occupancy");
    check(attributes.maxThreadsPerBlock == 1024 && blocks > 0, "attributes");
    sum<<<1, 2048>>>(a, N);
    check(cudaPeekAtLastError() == cudaErrorInvalidConfiguration, "errors");
    check(cudaGetLastError() && !cudaGetLastError(), "errors");
    check(cudaMemcpyFromSymbol(&result, total, sizeof result, 1) == cudaErrorInvalidValue, "errors");
    check(cudaMemcpyToSymbol(scale, factors, 1, ~(size_t)0) == cudaErrorInvalidValue, "errors");
    check(cudaGetLastError() && !cudaGetLastError(), "errors");
    fine(cudaEventDestroy(begin), "destroy");
    fine(cudaEventDestroy(end), "destroy");
    fine(cudaStreamDestroy(stream), "destroy");
    fine(cudaFree(a), "free");
    fine(cudaFree(b), "free");
    fine(cudaFree(state), "free");
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
