// c = a b, row-major, any size. A work-item computes TM rows of TN vectors of VEC columns; a work-group is WG_M items
// high and WG_N wide. With LOCAL, it first copies TK columns of its part of a, and TK rows of b, into local memory.
#include "vector.clh"

#define BM (WG_M * TM)
#define BN (WG_N * TN * VEC)

// Whatever a work-item at the edge has to do, one element after the other.
void edge(__global const float *restrict a, __global const float *restrict b, __global float *restrict c, int m, int n,
          int k, int row, int column)
{
    for (int i = row; i < min(row + TM, m); i++)
        for (int j = column; j < min(column + TN * VEC, n); j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
            c[(size_t)i * n + j] = sum;
        }
}

__kernel __attribute__((reqd_work_group_size(WG_N, WG_M, 1)))
void gemm(__global const float *restrict a, __global const float *restrict b, __global float *restrict c, int m, int n,
          int k)
{
    const int row = get_global_id(1) * TM;
    const int column = get_global_id(0) * TN * VEC;
    vec sums[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            sums[i][j] = (vec)(0.0f);

#if LOCAL
    __local float left[TK * BM];
    __local float right[TK * BN];
    const int first_row = get_group_id(1) * BM, first_column = get_group_id(0) * BN;
    const int mine = get_local_id(1) * WG_N + get_local_id(0);
    const int my_row = get_local_id(1) * TM, my_column = get_local_id(0) * TN * VEC;

    for (int depth = 0; depth < k; depth += TK) {
        for (int at = mine; at < TK * BM; at += WG_M * WG_N) {
            const int i = first_row + at / TK, p = depth + at % TK;
            left[(at % TK) * BM + at / TK] = i < m && p < k ? a[(size_t)i * k + p] : 0.0f;
        }
        for (int at = mine; at < TK * BN; at += WG_M * WG_N) {
            const int p = depth + at / BN, j = first_column + at % BN;
            right[at] = p < k && j < n ? b[(size_t)p * n + j] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < TK; p++) {
            vec across[TN];
#pragma unroll
            for (int j = 0; j < TN; j++)
                across[j] = LOAD(right + p * BN + my_column + j * VEC);
#pragma unroll
            for (int i = 0; i < TM; i++) {
                const vec down = (vec)(left[p * BM + my_row + i]);
#pragma unroll
                for (int j = 0; j < TN; j++)
                    sums[i][j] += down * across[j];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++)
            if (row + i < m && column + j * VEC < n)
                store_some(c + (size_t)(row + i) * n + column + j * VEC, sums[i][j], n - column - j * VEC);
#else
    if (row + TM > m || column + TN * VEC > n) {
        edge(a, b, c, m, n, k, row, column);
        return;
    }
    for (int p = 0; p < k; p++) {
        vec across[TN];
#pragma unroll
        for (int j = 0; j < TN; j++)
            across[j] = LOAD(b + (size_t)p * n + column + j * VEC);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const vec down = (vec)(a[(size_t)(row + i) * k + p]);
#pragma unroll
            for (int j = 0; j < TN; j++)
                sums[i][j] += down * across[j];
        }
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            STORE(c + (size_t)(row + i) * n + column + j * VEC, sums[i][j]);
#endif
}
