// Calls: recursion, pointers, virtual functions, structs by value, switches, local arrays, big parameters.
#include "shared.h"
#include <alloca.h>

__device__ __noinline__ uint32_t fibonacci(uint32_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ uint32_t ackermann(uint32_t m, uint32_t n)
{
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__device__ __noinline__ void quicksort(uint32_t *a, int lo, int hi)
{
    if (lo >= hi) return;
    uint32_t pivot = a[(lo + hi) / 2];
    int i = lo, j = hi;
    while (i <= j) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i <= j) {
            uint32_t t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quicksort(a, lo, j);
    quicksort(a, i, hi);
}

__device__ __noinline__ bool odd(uint32_t n);
__device__ __noinline__ bool even(uint32_t n) { return n == 0 ? true : odd(n - 1); }
__device__ __noinline__ bool odd(uint32_t n) { return n == 0 ? false : even(n - 1); }

extern "C" __global__ void recursion(uint32_t *out)
{
    uint32_t t = threadIdx.x, local[24], *o = out + t * 4u, sum = 0;
    o[0] = fibonacci(t % 13u);
    o[1] = ackermann(2, t % 4u);
    for (uint32_t k = 0; k < 24; k++) local[k] = mix(t * 24u + k);
    quicksort(local, 0, 23);
    for (uint32_t k = 0; k < 24; k++) sum = sum * 31u + local[k];
    o[2] = sum;
    o[3] = even(t) * 2 + odd(t);
}

typedef uint32_t (*operation)(uint32_t, uint32_t);
__device__ uint32_t plus(uint32_t a, uint32_t b) { return a + b; }
__device__ uint32_t minus(uint32_t a, uint32_t b) { return a - b; }
__device__ uint32_t times(uint32_t a, uint32_t b) { return a * b; }
__device__ uint32_t through(uint32_t a, uint32_t b) { return a / (b | 1u); }
__device__ operation operations[4] = {plus, minus, times, through};
__constant__ operation constant_operations[2] = {times, plus};
__device__ __noinline__ uint32_t fold(operation f, uint32_t n)
{
    uint32_t r = n;
    for (uint32_t k = 0; k < 5; k++) r = f(r, k + n);
    return r;
}

extern "C" __global__ void pointers(uint32_t *out)
{
    uint32_t t = threadIdx.x, *o = out + t * 3u;
    o[0] = operations[mix(t) & 3u](t * 1000u, t + 3u);
    o[1] = constant_operations[t & 1u](t, 17u);
    o[2] = fold(operations[t % 3u], t);
}

struct shape {
    uint32_t id;
    __device__ shape(uint32_t i) : id(i) {}
    __device__ virtual uint32_t area() const = 0;
    __device__ virtual uint32_t twice() const { return 2 * area(); }
    __device__ virtual ~shape() {}
};
struct square : shape {
    uint32_t a;
    __device__ square(uint32_t i) : shape(i), a(i + 1) {}
    __device__ uint32_t area() const override { return a * a; }
};
struct box : square {
    uint32_t b;
    __device__ box(uint32_t i) : square(i), b(i * 3 + 1) {}
    __device__ uint32_t area() const override { return a * b; }
    __device__ uint32_t twice() const override { return square::twice() + id; }
};

extern "C" __global__ void objects(uint32_t *out)
{
    uint32_t t = threadIdx.x;
    shape *s = mix(t) & 1u ? (shape *)new box(t) : (shape *)new square(t);
    out[t] = s->twice() * 7u + s->area();
    delete s;
}

__device__ __noinline__ body moved(body b, float by)
{
    b.mass *= 2;
    for (int k = 0; k < 3; k++) b.at[k] += by * (k + 1);
    b.id = (int16_t)(b.id - 5);
    b.tag ^= 0x81u;
    for (int k = 0; k < 6; k++) b.history[k] += (uint32_t)k * b.tag;
    return b;
}

extern "C" __global__ void structs(body in, body *out, uint32_t index)
{
    uint32_t t = threadIdx.x;
    body b = in;
    b.history[(index + t) % 6u] = t;
    b.tag = (uint8_t)t;
    b = moved(b, 0.5f * t);
    out[t] = t & 1u ? moved(b, 1.0f) : b;
}

struct large {
    uint32_t v[1500];
};

extern "C" __global__ void big_parameter(const __grid_constant__ large p, uint32_t *out)
{
    out[threadIdx.x] = p.v[(mix(threadIdx.x) ^ 5u) % 1500u];
}

extern "C" __global__ void switches(uint32_t *out) { out[threadIdx.x] = switch_of(threadIdx.x); }

extern "C" __global__ void stack_arrays(uint32_t *out)
{
    uint32_t t = threadIdx.x, n = t % 9u + 1u, sum = 0;
    uint32_t *a = (uint32_t *)alloca(n * sizeof *a);
    for (uint32_t k = 0; k < n; k++) a[k] = mix(t + k);
    for (uint32_t k = 0; k < n; k++) sum = sum * 7u + a[n - 1u - k];
    out[t] = sum;
}

struct root {
    uint32_t x;
    __device__ virtual uint32_t f() { return 1; }
};
struct left : virtual root {
    __device__ uint32_t f() override { return 2 + x; }
};
struct right : virtual root {
    __device__ virtual uint32_t g() { return x; }
};
struct bottom : left, right {
    __device__ uint32_t g() override { return f() * 10; }
};
struct counter {
    uint32_t x;
    __device__ uint32_t plus(uint32_t k) { return x + k; }
    __device__ virtual uint32_t times(uint32_t k) { return x * k; }
};

extern "C" __global__ void members(uint32_t *out)
{
    uint32_t t = threadIdx.x;
    bottom b;
    b.x = t;
    right *r = &b;
    root *o = &b;
    counter c;
    c.x = t + 1u;
    uint32_t (counter::*p)(uint32_t) = t & 1u ? &counter::times : &counter::plus;
    out[t] = r->g() + o->f() + (c.*p)(7u) * 1000u;
}

struct fields {
    unsigned a : 3, b : 7;
    signed c : 5;
    unsigned long long d : 40;
};

extern "C" __global__ void bit_fields(uint64_t *out)
{
    uint32_t t = threadIdx.x;
    fields x;
    x.a = t;
    x.b = t * 3u;
    x.c = -(int)t;
    x.d = t * 1000000007ull;
    fields y = x;
    y.b++;
    out[t] = y.a + y.b * 10u + (uint64_t)(y.c * 1000) + y.d;
}

struct node {
    node *l, *r;
    uint32_t v;
};

__device__ node *insert(node *n, uint32_t v)
{
    if (!n) {
        n = new node;
        n->l = n->r = NULL;
        n->v = v;
    } else if (v < n->v)
        n->l = insert(n->l, v);
    else
        n->r = insert(n->r, v);
    return n;
}

__device__ uint32_t take_down(node *n, uint32_t before)
{
    if (!n) return before;
    uint32_t r = take_down(n->l, before) * 31u + n->v;
    r = take_down(n->r, r);
    delete n;
    return r;
}

extern "C" __global__ void tree(uint32_t *out)
{
    node *top = NULL;
    for (uint32_t k = 0; k < 20; k++) top = insert(top, mix(threadIdx.x * 20u + k));
    out[threadIdx.x] = take_down(top, 0);
}
