// operators.hpp - values of ptxgen.h that add, compare and index as numbers do, for C++11 and later.
//
//     px::kernel k(m, "scale");                                  // x[i] = a * x[i] + 1, for i < n
//     px::array<float> x = k.pointer<float>("x");
//     px::value a = k.parameter<float>("a"), n = k.parameter<unsigned>("n"), i = k.global_x();
//     px::when(i < n, [&] { x[i] = a * x[i] + 1; });
//     k.end();
//
// A plain number takes the type of the value beside it. An error names the line of the operator that caused
// it (GCC, Clang, MSVC from 19.26 on; else the line of the kernel). Nothing is hidden: a value is a ptx_val
// and its kernel, so every function of ptxgen.h can be called beside. A kernel object must live as long as
// its module, whose error points into it.
#ifndef OPERATORS_HPP
#define OPERATORS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#ifndef PTXGEN_H // a copy of this file lies elsewhere: include ptxgen.h before it
#include "../ptxgen.h"
#endif

#if defined(__GNUC__) || (defined(_MSC_VER) && _MSC_VER >= 1926)
#define PX_FILE __builtin_FILE()
#define PX_LINE __builtin_LINE()
#else
#define PX_FILE nullptr
#define PX_LINE 0
#endif

namespace px {

template <typename T> struct type_of;
#define PX_TYPE(c_type, type)                                                                                \
    template <> struct type_of<c_type> { static const ptx_type is = type; };
PX_TYPE(float, PTX_F32)
PX_TYPE(double, PTX_F64)
PX_TYPE(std::int32_t, PTX_S32)
PX_TYPE(std::uint32_t, PTX_U32)
PX_TYPE(std::int64_t, PTX_S64)
PX_TYPE(std::uint64_t, PTX_U64)
#undef PX_TYPE

class kernel;

struct value {
    ptx_val of;
    kernel *in;
};

class variable;
template <typename T> class element;

// An operand of an operator: a value or a number, and the caller's line, by default arguments.
struct operand {
    ptx_val of;
    double number;       // where `in` is NULL
    std::uint64_t whole; // the same, exactly, where it is no fraction
    bool fraction;
    kernel *in;
    const char *file;
    int line;
    operand(const value &v, const char *f = PX_FILE, int l = PX_LINE)
        : of(v.of), number(0), whole(0), fraction(false), in(v.in), file(f), line(l) {}
    template <typename N, typename = typename std::enable_if<std::is_arithmetic<N>::value
                                                             || std::is_enum<N>::value>::type>
    operand(N n, const char *f = PX_FILE, int l = PX_LINE)
        : of(ptx_imm(0)), number(static_cast<double>(n)), whole(0),
          fraction(std::is_floating_point<N>::value), in(nullptr), file(f), line(l) {
        if (!fraction)
            whole = static_cast<std::uint64_t>(n);
        else if (number >= -9223372036854775808.0 && number < 9223372036854775808.0) {
            whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
            fraction = static_cast<double>(static_cast<std::int64_t>(number)) != number; // 2.0 is whole
        }
    }
    operand(const variable &v, const char *f = PX_FILE, int l = PX_LINE);
    template <typename T> operand(const element<T> &e, const char *f = PX_FILE, int l = PX_LINE);
    value get() const {
        value v = {of, in};
        return v;
    }
    // As a ptx_val of that kernel; a number takes `type`.
    ptx_val as(ptx_type type, kernel *beside) const;
};

template <typename T> class array {
  public:
    array(const value &pointer) : base(pointer) {}
    element<T> operator[](const operand &index) const;
    value base;
};

class kernel {
  public:
    ptx_kernel *k;
    kernel(ptx_module *m, const char *name, const char *f = PX_FILE, int l = PX_LINE) : k(nullptr) {
        k = ptx_entry_(m, site(f, l), name);
    }
    template <typename T> value parameter(const char *name, const char *f = PX_FILE, int l = PX_LINE) {
        return make(ptx_param_(k, site(f, l), name, type_of<T>::is, PTX_GENERIC));
    }
    template <typename T> array<T> pointer(const char *name, const char *f = PX_FILE, int l = PX_LINE) {
        return array<T>(make(ptx_param_(k, site(f, l), name, PTX_U64, PTX_GLOBAL)));
    }
    value global_x() { return make(ptx_global_x(k)); }
    value global_y() { return make(ptx_global_y(k)); }
    value thread_x() { return make(ptx_tid_x(k)); } // in its block
    // An array in shared memory of the block. Its contents are undefined at the start.
    template <typename T>
    array<T> shared(const char *name, std::uint32_t count, const char *f = PX_FILE, int l = PX_LINE) {
        return array<T>(make(ptx_shared_(k, site(f, l), name, type_of<T>::is, count, 0)));
    }
    // All threads of the block wait here for each other.
    void barrier(const char *f = PX_FILE, int l = PX_LINE) {
        ptx_op1_(k, site(f, l), PTX_BAR_SYNC, 0, ptx_imm(0));
    }
    template <typename T> value constant(T number) { return make(operand(number).as(type_of<T>::is, this)); }
    void end() { ptx_ret(k); }
    value make(const ptx_val &v) {
        value made = {v, this};
        return made;
    }
    // "file:line", kept as long as this object.
    const char *site(const char *file, int line) {
        if (!file) return nullptr;
        std::string &text = sites[std::make_pair(file, line)];
        if (text.empty()) text = std::string(file) + ":" + std::to_string(line);
        return text.c_str();
    }

  private:
    std::map<std::pair<const char *, int>, std::string> sites;
    kernel(const kernel &);
    kernel &operator=(const kernel &);
};

inline ptx_val operand::as(ptx_type type, kernel *beside) const {
    if (in) return of;
    std::int64_t low = static_cast<std::int64_t>(whole);
    bool floating = type == PTX_F16 || type == PTX_BF16 || type == PTX_F32 || type == PTX_F64;
    const char *site = beside->site(file, line);
    if (fraction && !floating && type != PTX_NONE)
        ptx_fail(ptx_kernel_module(beside->k), PTX_E_RANGE, site,
                 "%g is no whole number, and the value beside it is %s: convert that by cast<float>()",
                 number, ptx_type_name(type));
    switch (type) {
    case PTX_F32: return ptx_f32(number);
    case PTX_F64: return ptx_f64(number);
    case PTX_U32: return ptx_u32(whole); // refused where it does not fit
    case PTX_S32: return number > 0 && low < 0 ? ptx_s32(INT64_MAX) : ptx_s32(low);
    case PTX_U64:
    case PTX_S64:
        if (low + (INT64_C(1) << 54) < 0 || low >> 54 > 0) return ptx_wide_(beside->k, site, type, whole);
        return type == PTX_U64 ? ptx_u64(whole) : ptx_s64(low);
    default: return ptx_imm(low);
    }
}

inline value binary(ptx_op_id op, ptx_mods mods, const operand &a, const operand &b) {
    kernel *in = a.in ? a.in : b.in;
    ptx_type type = ptx_type_of(a.in ? a.of : b.of);
    return in->make(ptx_op2_(in->k, in->site(a.file, a.line), op, mods, a.as(type, in), b.as(type, in)));
}
inline value unary(ptx_op_id op, ptx_mods mods, const operand &a) {
    return a.in->make(ptx_op1_(a.in->k, a.in->site(a.file, a.line), op, mods, a.of));
}

#define PX_BINARY(name, op, mods)                                                                            \
    inline value name(const operand &a, const operand &b) { return binary(op, mods, a, b); }
PX_BINARY(operator+, PTX_ADD, 0)
PX_BINARY(operator-, PTX_SUB, 0)
PX_BINARY(operator*, PTX_MUL, 0)
PX_BINARY(operator/, PTX_DIV, 0)
PX_BINARY(operator%, PTX_REM, 0)
PX_BINARY(operator&, PTX_AND, 0)
PX_BINARY(operator|, PTX_OR, 0)
PX_BINARY(operator^, PTX_XOR, 0)
PX_BINARY(operator<, PTX_SETP, PTX_LT)
PX_BINARY(operator<=, PTX_SETP, PTX_LE)
PX_BINARY(operator>, PTX_SETP, PTX_GT)
PX_BINARY(operator>=, PTX_SETP, PTX_GE)
PX_BINARY(operator==, PTX_SETP, PTX_EQ)
PX_BINARY(operator!=, PTX_SETP, PTX_NE)
PX_BINARY(min, PTX_MIN, 0)
PX_BINARY(max, PTX_MAX, 0)
#undef PX_BINARY
inline value operator-(const operand &a) { return unary(PTX_NEG, 0, a); }
inline value sqrt(const operand &a) { return unary(PTX_SQRT, 0, a); }
inline value abs(const operand &a) { return unary(PTX_ABS, 0, a); }
inline value rsqrt(const operand &a) { return unary(PTX_RSQRT, 0, a); } // approximate
inline value operator!(const value &p) { return p.in->make(ptx_inv(p.of)); }

// p ? a : b
inline value select(const value &p, const operand &a, const operand &b) {
    ptx_type type = ptx_type_of(a.in ? a.of : b.of);
    return p.in->make(
        ptx_op3_(p.in->k, p.in->site(a.file, a.line), PTX_SELP, 0, a.as(type, p.in), b.as(type, p.in), p.of));
}
// Converts, as a cast in C does: cast<float>(i).
template <typename T> value cast(const operand &a) {
    return a.in->make(ptx_cvt_(a.in->k, a.in->site(a.file, a.line), 0, type_of<T>::is, a.of));
}

// A variable: variable sum(k.constant(0.0f)); sum += x[i];
class variable {
  public:
    explicit variable(const value &first, const char *f = PX_FILE, int l = PX_LINE)
        : in(first.in), of(ptx_var_new_(in->k, in->site(f, l), first.of)) {}
    variable(const variable &v) = default;
    value get(const char *f = PX_FILE, int l = PX_LINE) const {
        return in->make(ptx_get_(in->k, in->site(f, l), of));
    }
    operator value() const { return get(nullptr, 0); }
    variable &operator=(const operand &x) {
        ptx_set_(in->k, in->site(x.file, x.line), of, x.as(ptx_type_of(of.cell), in));
        return *this;
    }
    variable &operator=(const variable &x) { return *this = operand(x); }
    variable &operator+=(const operand &x) { return update(PTX_ADD, x); }
    variable &operator-=(const operand &x) { return update(PTX_SUB, x); }
    variable &operator*=(const operand &x) { return update(PTX_MUL, x); }
    variable &operator/=(const operand &x) { return update(PTX_DIV, x); }
    kernel *in;
    ptx_var of;

  private:
    variable &update(ptx_op_id op, const operand &x) {
        return *this = operand(binary(op, 0, operand(*this, x.file, x.line), x), x.file, x.line);
    }
};
inline operand::operand(const variable &v, const char *f, int l)
    : of(v.get(f, l).of), number(0), whole(0), fraction(false), in(v.in), file(f), line(l) {}

// x[i]: a load where it is used, a store where it is assigned.
template <typename T> class element {
  public:
    element(const value &base, const operand &i)
        : in(base.in), file(i.file), line(i.line),
          at(ptx_elem_(in->k, in->site(file, line), type_of<T>::is, base.of, i.as(PTX_S64, in))) {}
    void operator=(const operand &x) const {
        ptx_st_(in->k, in->site(x.file, x.line), type_of<T>::is, at, x.as(type_of<T>::is, in));
    }
    void operator=(const element &x) const { *this = operand(x); }
    void operator+=(const operand &x) const { *this = binary(PTX_ADD, 0, operand(*this, x.file, x.line), x); }
    element(const element &) = default;
    operator value() const { return operand(*this, file, line).get(); }
    kernel *in;
    const char *file;
    int line;
    ptx_mem at;
};
template <typename T> element<T> array<T>::operator[](const operand &index) const {
    return element<T>(base, index);
}
template <typename T>
operand::operand(const element<T> &e, const char *f, int l)
    : of(ptx_ld_(e.in->k, e.in->site(f, l), type_of<T>::is, e.at)), number(0), whole(0), fraction(false),
      in(e.in), file(f), line(l) {}

// Control flow: the bodies are functions without arguments, and of the index.
template <typename F> void when(const operand &p, F body) {
    ptx_if_(p.in->k, p.in->site(p.file, p.line), p.of);
    body();
    ptx_end_(p.in->k, p.in->site(p.file, p.line));
}
// first, first + step ... below limit
template <typename F> void loop(const operand &first, const operand &limit, const operand &step, F body) {
    kernel *in = limit.in ? limit.in : first.in;
    const char *site = in->site(limit.file, limit.line);
    ptx_type type = ptx_type_of(limit.in ? limit.of : first.of);
    body(in->make(ptx_for_(in->k, site, first.as(type, in), limit.as(type, in), step.as(type, in))));
    ptx_end_(in->k, site);
}
template <typename F> void loop(const operand &first, const operand &limit, F body) {
    loop(first, limit, 1, body);
}

// Of numbers alone there is no kernel to emit to: start from k.constant(1.0f).
#define PX_NUMBERS(A, B)                                                                                     \
    typename std::enable_if<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value>::type
template <typename A, typename B> PX_NUMBERS(A, B) min(A, B) = delete;
template <typename A, typename B> PX_NUMBERS(A, B) max(A, B) = delete;
template <typename A> PX_NUMBERS(A, A) sqrt(A) = delete;
template <typename A> PX_NUMBERS(A, A) abs(A) = delete;
template <typename A> PX_NUMBERS(A, A) rsqrt(A) = delete;
template <typename T, typename A> PX_NUMBERS(A, A) cast(A) = delete;
template <typename A, typename F> PX_NUMBERS(A, A) when(A, F) = delete;
template <typename A, typename B, typename F> PX_NUMBERS(A, B) loop(A, B, F) = delete;

// Mathematics, by the names of ptxgen.h: px::sin(x), px::pow(x, 2).
inline value math(const char *name, const operand &a, const operand &b) {
    kernel *in = a.in ? a.in : b.in;
    ptx_type type = ptx_type_of(a.in ? a.of : b.of);
    return in->make(
        ptx_math_(in->k, in->site(a.file, a.line), name, 2, a.as(type, in), b.as(type, in), ptx_imm(0)));
}
inline value math(const char *name, const operand &a) {
    return a.in->make(ptx_math_(a.in->k, a.in->site(a.file, a.line), name, 1, a.of, ptx_imm(0), ptx_imm(0)));
}
#define PX_MATH1(name)                                                                                       \
    inline value name(const operand &a) { return math(#name, a); }                                           \
    template <typename A> PX_NUMBERS(A, A) name(A) = delete;
#define PX_MATH2(name)                                                                                       \
    inline value name(const operand &a, const operand &b) { return math(#name, a, b); }                      \
    template <typename A, typename B> PX_NUMBERS(A, B) name(A, B) = delete;
PX_MATH1(sin)
PX_MATH1(cos)
PX_MATH1(tan)
PX_MATH1(tanh)
PX_MATH1(exp)
PX_MATH1(log)
PX_MATH1(floor)
PX_MATH1(ceil)
PX_MATH2(pow)
PX_MATH2(atan2)
#undef PX_MATH1
#undef PX_MATH2
#undef PX_NUMBERS

} // namespace px

#endif
