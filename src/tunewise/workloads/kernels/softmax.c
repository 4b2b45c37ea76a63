/* Softmax over the rows of a float32 matrix, row-major, on one thread:
 *   out[r][c] = exp(in[r][c] - max of row r) / sum over the row of the same
 *
 * Parameters (-D):
 *   ALGORITHM  STORE:     find the maximum; store and sum the exponentials; scale what was stored
 *              RECOMPUTE: find the maximum; sum the exponentials; compute them again, scaled
 *              ONLINE:    find maximum and sum together, `block` columns at a time; then as RECOMPUTE
 *   VECTOR     floats in a vector       UNROLL  vectors per loop iteration, each with its own partial result
 *   EXP        LIBM: expf for each element; POLY5, POLY6: a polynomial of that degree, whole vectors at a time
 *
 * Each exponential is right to 4e-7 of its value, and the rounding of x - max comes on top. Minus infinity gives
 * exactly 0; a row that holds NaN or plus infinity, or nothing but minus infinity, gives NaN, as numpy does.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define STORE 1
#define RECOMPUTE 2
#define ONLINE 3
#define LIBM 1
#define POLY5 2
#define POLY6 3
#if ALGORITHM != STORE && ALGORITHM != RECOMPUTE && ALGORITHM != ONLINE
#error "ALGORITHM must be STORE, RECOMPUTE or ONLINE"
#endif
#if EXP != LIBM && EXP != POLY5 && EXP != POLY6
#error "EXP must be LIBM, POLY5 or POLY6"
#endif

#define STEP (VECTOR * UNROLL)
#define CHUNK 4096 /* a multiple of every STEP */
#define UNROLLED _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

INLINE vector splat(float x) { return (vector){0} + x; }

INLINE vector load(const float *x) { return *(const vector *)x; }

INLINE void store(float *x, vector v) { *(vector *)x = v; }

/* Copy n < VECTOR floats in pieces of known size: a call of memcpy would cost more than the whole short row. */
INLINE void copy_part(float *to, const float *from, int64_t n) {
    UNROLLED
    for (int piece = VECTOR / 2; piece > 0; piece /= 2)
        if (n & piece) {
            memcpy(to, from, piece * sizeof(float));
            to += piece;
            from += piece;
        }
}

/* The n floats at x, filled up with minus infinity: it is no maximum, and its exponential adds nothing. */
INLINE vector load_part(const float *x, int64_t n) {
    vector v = splat(-INFINITY);
    copy_part((float *)&v, x, n);
    return v;
}

INLINE void store_part(float *x, vector v, int64_t n) { copy_part(x, (const float *)&v, n); }

INLINE vector larger(vector x, vector y) {
    mask is = x > y;
    return (vector)((is & (mask)x) | (~is & (mask)y));
}

/* e^x for x <= 0. NaN stays NaN. */
INLINE vector exponential(vector x) {
#if EXP == LIBM
    vector result;
    for (int i = 0; i < VECTOR; i++) result[i] = expf(x[i]);
    return result;
#else
    /* Below the smallest normal number the result is 0, and x is replaced so that the powers of two stay legal. */
    const mask is_zero = x < splat(-87.3f);
    x = (vector)((~is_zero & (mask)x));
    /* x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds, and leaves n in the low bits. */
    const vector shifted = x * 1.44269504f + 12582912.0f;
    const vector n = shifted - 12582912.0f;
    /* ln 2 in two parts, the first with few enough bits that n times it is exact. */
    const vector r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
#if EXP == POLY5 /* least largest relative error on the interval */
    vector p = r * 0.008297619216f + 0.04191562942f;
    p = p * r + 0.1666757655f;
    p = p * r + 0.4999889266f;
    p = p * r + 0.9999996911f;
    p = p * r + 1.000000072f;
#else /* the series */
    vector p = r * 1.38888889e-3f + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
#endif
    const mask power = ((mask)shifted << 23) + 0x3f800000; /* 2^n as the bits of a float: the rest shifts out */
    return (vector)(~is_zero & (mask)(p * (vector)power));
#endif
}

/* The maximum of n floats, and of `so_far`. */
INLINE float row_max(const float *x, int64_t n, float so_far) {
    vector best[UNROLL];
    int64_t i = 0;
    UNROLLED
    for (int u = 0; u < UNROLL; u++) best[u] = splat(so_far);
    for (; i + STEP <= n; i += STEP) {
        UNROLLED
        for (int u = 0; u < UNROLL; u++) best[u] = larger(best[u], load(x + i + u * VECTOR));
    }
    for (; i + VECTOR <= n; i += VECTOR) best[0] = larger(best[0], load(x + i));
    if (i < n) best[0] = larger(best[0], load_part(x + i, n - i));
    UNROLLED
    for (int u = 1; u < UNROLL; u++) best[0] = larger(best[0], best[u]);
    UNROLLED
    for (int half = VECTOR / 2; half > 0; half /= 2) {
        UNROLLED
        for (int lane = 0; lane < half; lane++) {
            const float x0 = best[0][lane], x1 = best[0][lane + half];
            best[0][lane] = x0 > x1 ? x0 : x1;
        }
    }
    return best[0][0];
}

/* The sum of e^(x - max) over n floats; the exponentials are kept in `out` if it is not NULL. */
INLINE float exp_sum_chunk(const float *x, float *out, int64_t n, float max) {
    vector sum[UNROLL];
    int64_t i = 0;
    UNROLLED
    for (int u = 0; u < UNROLL; u++) sum[u] = splat(0);
    for (; i + STEP <= n; i += STEP) {
        UNROLLED
        for (int u = 0; u < UNROLL; u++) {
            const vector e = exponential(load(x + i + u * VECTOR) - max);
            if (out) store(out + i + u * VECTOR, e);
            sum[u] += e;
        }
    }
    for (; i < n; i += VECTOR) {
        const int64_t part = n - i;
        const vector e = exponential((part < VECTOR ? load_part(x + i, part) : load(x + i)) - max);
        if (out && part < VECTOR) store_part(out + i, e, part);
        if (out && part >= VECTOR) store(out + i, e);
        sum[0] += e;
    }
    UNROLLED
    for (int u = 1; u < UNROLL; u++) sum[0] += sum[u];
    UNROLLED
    for (int half = VECTOR / 2; half > 0; half /= 2) {
        UNROLLED
        for (int lane = 0; lane < half; lane++) sum[0][lane] += sum[0][lane + half];
    }
    return sum[0][0];
}

/* The same for rows of any length: partial sums of CHUNK terms, or a long row would lose digits. */
INLINE float exp_sum(const float *x, float *out, int64_t n, float max) {
    double total = 0;
    for (int64_t i = 0; i < n; i += CHUNK)
        total += exp_sum_chunk(x + i, out ? out + i : NULL, n - i < CHUNK ? n - i : CHUNK, max);
    return total;
}

/* out = e^(x - max) * scale. */
INLINE void exp_scaled(const float *x, float *out, int64_t n, float max, float scale) {
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        UNROLLED
        for (int u = 0; u < UNROLL; u++)
            store(out + i + u * VECTOR, exponential(load(x + i + u * VECTOR) - max) * scale);
    }
    for (; i + VECTOR <= n; i += VECTOR) store(out + i, exponential(load(x + i) - max) * scale);
    if (i < n) store_part(out + i, exponential(load_part(x + i, n - i) - max) * scale, n - i);
}

INLINE void scale_all(float *out, int64_t n, float scale) {
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        UNROLLED
        for (int u = 0; u < UNROLL; u++) store(out + i + u * VECTOR, load(out + i + u * VECTOR) * scale);
    }
    for (; i < n; i++) out[i] *= scale;
}

static void softmax_row(const float *x, float *out, int64_t n, int64_t block) {
#if ALGORITHM == STORE
    const float max = row_max(x, n, -INFINITY);
    scale_all(out, n, 1 / exp_sum(x, out, n, max));
#elif ALGORITHM == RECOMPUTE
    const float max = row_max(x, n, -INFINITY);
    exp_scaled(x, out, n, max, 1 / exp_sum(x, NULL, n, max));
#else
    float max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i += block) {
        const int64_t columns = n - i < block ? n - i : block;
        const float next = row_max(x + i, columns, max);
        /* Nothing but minus infinity so far: nothing to sum, and the difference below would be NaN. */
        if (next == -INFINITY && i + columns < n) continue;
        sum = (sum > 0 ? sum * expf(max - next) : sum) + exp_sum(x + i, NULL, columns, next);
        max = next;
    }
    exp_scaled(x, out, n, max, 1 / sum);
#endif
}

int run(const float *in, float *out, int64_t rows, int64_t columns, int64_t block) {
    if (block < 1) block = columns;
    for (int64_t r = 0; r < rows; r++) softmax_row(in + r * columns, out + r * columns, columns, block);
    return 0;
}
