// The valid correlation of an image with a filter, any sizes. A work-item computes TY rows of VEC outputs; a work-group
// is WG_Y items high and WG_X wide. With LOCAL, it first copies the part of the image that it reads into local memory.
// FIXED > 0 compiles a square filter of that size in; another filter takes the loops whose bounds are read at run time.
#include "vector.clh"

#define HIGH (WG_Y * TY)
#define WIDE (WG_X * VEC)

#if FILTER_CONSTANT
#define FILTER __constant
#else
#define FILTER __global const
#endif

#if LOCAL
#define IMAGE __local
#else
#define IMAGE __global const
#endif

void correlate(IMAGE float *image, int stride, FILTER float *filter, int fh, int fw, vec *sums)
{
    for (int v = 0; v < fh; v++)
        for (int u = 0; u < fw; u++) {
            const vec weight = (vec)(filter[v * fw + u]);
#pragma unroll
            for (int i = 0; i < TY; i++)
                sums[i] += weight * LOAD(image + (i + v) * stride + u);
        }
}

void correlate_any(IMAGE float *image, int stride, FILTER float *filter, int fh, int fw, vec *sums)
{
#if FIXED
    if (fh == FIXED && fw == FIXED) {
        correlate(image, stride, filter, FIXED, FIXED, sums);
        return;
    }
#endif
    correlate(image, stride, filter, fh, fw, sums);
}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, 1)))
void conv2d(__global const float *restrict image, FILTER float *restrict filter, __global float *restrict out,
            __local float *part, int height, int width, int fh, int fw)
{
    const int rows = height - fh + 1, columns = width - fw + 1;
    const int row = get_global_id(1) * TY, column = get_global_id(0) * VEC;
    vec sums[TY];
#pragma unroll
    for (int i = 0; i < TY; i++)
        sums[i] = (vec)(0.0f);

#if LOCAL
    const int first_row = get_group_id(1) * HIGH, first_column = get_group_id(0) * WIDE;
    const int high = HIGH + fh - 1, wide = WIDE + fw - 1;
    for (int i = get_local_id(1); i < high; i += WG_Y)
        for (int j = get_local_id(0); j < wide; j += WG_X) {
            const int y = first_row + i, x = first_column + j;
            part[i * wide + j] = y < height && x < width ? image[(size_t)y * width + x] : 0.0f;
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    correlate_any(part + get_local_id(1) * TY * wide + get_local_id(0) * VEC, wide, filter, fh, fw, sums);
    for (int i = 0; i < TY; i++)
        if (row + i < rows && column < columns)
            store_some(out + (size_t)(row + i) * columns + column, sums[i], columns - column);
#else
    if (row + TY <= rows && column + VEC <= columns) {
        correlate_any(image + (size_t)row * width + column, width, filter, fh, fw, sums);
#pragma unroll
        for (int i = 0; i < TY; i++)
            STORE(out + (size_t)(row + i) * columns + column, sums[i]);
        return;
    }
    for (int i = row; i < min(row + TY, rows); i++)
        for (int j = column; j < min(column + VEC, columns); j++) {
            float sum = 0;
            for (int v = 0; v < fh; v++)
                for (int u = 0; u < fw; u++)
                    sum += filter[v * fw + u] * image[(size_t)(i + v) * width + j + u];
            out[(size_t)i * columns + j] = sum;
        }
#endif
}
