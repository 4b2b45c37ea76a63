// The softmax of every row, any size. WG work-items share a row, each taking vectors of VEC columns at a stride. PASSES
// 3: the maximum, then the exponentials, stored, and their sum, then the division; 2: maximum and sum in one pass, where
// a new maximum scales the sum so far, then the exponentials once more.
#include "vector.clh"

#if NATIVE
#define EXP native_exp
#else
#define EXP exp
#endif

#if VEC == 1
#define MAXIMUM(v) (v)
#define SUM(v) (v)
#elif VEC == 2
#define MAXIMUM(v) fmax((v).s0, (v).s1)
#define SUM(v) ((v).s0 + (v).s1)
#elif VEC == 4
#define MAXIMUM(v) fmax(fmax((v).s0, (v).s1), fmax((v).s2, (v).s3))
#define SUM(v) (((v).s0 + (v).s1) + ((v).s2 + (v).s3))
#else
float maximum_of(vec v)
{
    float parts[VEC], most = -INFINITY;
    STORE(parts, v);
    for (int i = 0; i < VEC; i++)
        most = fmax(most, parts[i]);
    return most;
}
float sum_of(vec v)
{
    float parts[VEC], sum = 0;
    STORE(parts, v);
    for (int i = 0; i < VEC; i++)
        sum += parts[i];
    return sum;
}
#define MAXIMUM(v) maximum_of(v)
#define SUM(v) sum_of(v)
#endif

// exp(x - most) as a softmax means it: a masked element is nothing, even where all are masked so far.
float shifted(float x, float most)
{
    return x == -INFINITY ? 0.0f : EXP(x - most);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void softmax(__global const float *restrict x, __global float *restrict out, int rows, int columns)
{
    __local float shared[2 * WG];
    const int mine = get_local_id(0);
    const int whole = columns - columns % VEC;
    x += (size_t)get_group_id(0) * columns;
    out += (size_t)get_group_id(0) * columns;

    // Each item's own maximum and sum.
    float most = -INFINITY, sum = 0;
#if PASSES == 2
    for (int j = mine * VEC; j < whole; j += WG * VEC) {
        const vec v = LOAD(x + j);
        const float higher = fmax(most, MAXIMUM(v));
        if (higher > most) {
            sum *= shifted(most, higher);
            most = higher;
        }
        if (most > -INFINITY)
            sum += SUM(EXP(v - (vec)(most)));
    }
    for (int j = whole + mine; j < columns; j += WG) {
        const float higher = fmax(most, x[j]);
        sum = sum * shifted(most, higher) + shifted(x[j], higher);
        most = higher;
    }
#else
    for (int j = mine * VEC; j < whole; j += WG * VEC)
        most = fmax(most, MAXIMUM(LOAD(x + j)));
    for (int j = whole + mine; j < columns; j += WG)
        most = fmax(most, x[j]);
#endif

    // The row's maximum.
    shared[mine] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = WG / 2; half_way > 0; half_way /= 2) {
        if (mine < half_way)
            shared[mine] = fmax(shared[mine], shared[mine + half_way]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float highest = shared[0];

#if PASSES == 2
    sum *= shifted(most, highest);
#else
    for (int j = mine * VEC; j < whole; j += WG * VEC) {
        const vec e = EXP(LOAD(x + j) - (vec)(highest));
        STORE(out + j, e);
        sum += SUM(e);
    }
    for (int j = whole + mine; j < columns; j += WG) {
        const float e = EXP(x[j] - highest);
        out[j] = e;
        sum += e;
    }
#endif

    // The row's sum.
    shared[WG + mine] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = WG / 2; half_way > 0; half_way /= 2) {
        if (mine < half_way)
            shared[WG + mine] += shared[WG + mine + half_way];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float scale = 1.0f / shared[WG];

#if PASSES == 2
    for (int j = mine * VEC; j < whole; j += WG * VEC)
        STORE(out + j, EXP(LOAD(x + j) - (vec)(highest)) * (vec)(scale));
    for (int j = whole + mine; j < columns; j += WG)
        out[j] = EXP(x[j] - highest) * scale;
#else
    for (int j = mine * VEC; j < whole; j += WG * VEC)
        STORE(out + j, LOAD(out + j) * (vec)(scale));
    for (int j = whole + mine; j < columns; j += WG)
        out[j] *= scale;
#endif
}
