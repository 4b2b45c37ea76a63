/* C = A * B for row-major float32 matrices of any size, on one thread.
 *
 * Three levels of blocking: blocks of `nc` columns, `kc` products and `mc` rows are sized for the caches and given at
 * run time; inside them a tile of C that is MR rows by NR columns is held in vector registers.
 *
 * Parameters (-D):
 *   VECTOR  floats in a vector            MR, NV  register tile: MR rows by NV vectors
 *   UNROLL  products per loop iteration   ORDER   which tiles follow each other: DOWN a column of tiles or ALONG a row
 *   PACK_A, PACK_B  copy a block into the order in which the tile reads it
 *
 * A panel is the strip of A (MR rows) or of B (NR columns) that one tile reads. A ragged last panel is always copied
 * and filled up with zeros, so every tile is a full one and no read leaves the matrices.
 */
#include <stdint.h>
#include <string.h>

#define DOWN 1
#define ALONG 2
#if ORDER != DOWN && ORDER != ALONG
#error "ORDER must be DOWN or ALONG"
#endif

#define NR (NV * VECTOR)
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define ROUND_UP(x, step) (((x) + (step) - 1) / (step) * (step))
#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(count) PRAGMA(GCC unroll count)
#define UNROLLED _Pragma("GCC unroll 32")

typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

#define A_STEP (PACK_A ? MR : 1) /* from one product to the next in a panel of A */

/* One tile: c = a * b, or c += a * b, over `kc` products. Never inlined: inside the loops over tiles the compiler runs
 * out of registers for addresses, and reloads them for every product. */
static __attribute__((noinline)) void tile(int64_t kc, const float *a, int64_t a_row, const float *b, int64_t b_step,
                                           float *c, int64_t ldc, int add) {
    vector sum[MR][NV];
    UNROLLED
    for (int i = 0; i < MR; i++) {
        UNROLLED
        for (int j = 0; j < NV; j++) sum[i][j] = (vector){0};
    }
    UNROLL_BY(UNROLL)
    for (int64_t p = 0; p < kc; p++) {
        vector right[NV];
        UNROLLED
        for (int j = 0; j < NV; j++) right[j] = *(const vector *)(b + p * b_step + j * VECTOR);
        UNROLLED
        for (int i = 0; i < MR; i++) {
            float left = a[i * a_row + p * A_STEP];
            UNROLLED
            for (int j = 0; j < NV; j++) sum[i][j] += left * right[j];
        }
    }
    UNROLLED
    for (int i = 0; i < MR; i++) {
        UNROLLED
        for (int j = 0; j < NV; j++) {
            vector *out = (vector *)(c + i * ldc + j * VECTOR);
            if (add) sum[i][j] += *out;
            *out = sum[i][j];
        }
    }
}

/* Copy `rows` rows of A into a panel: MR rows beside each other if PACK_A, one after the other if not. */
static void pack_rows(const float *a, int64_t lda, int64_t rows, int64_t kc, float *panel) {
    for (int64_t i = 0; i < MR; i++) {
        float *to = panel + (PACK_A ? i : i * kc);
        if (i < rows)
            for (int64_t p = 0; p < kc; p++) to[p * A_STEP] = a[i * lda + p];
        else
            for (int64_t p = 0; p < kc; p++) to[p * A_STEP] = 0;
    }
}

/* Copy `columns` columns of B into a panel of kc rows by NR columns. */
static void pack_columns(const float *b, int64_t ldb, int64_t columns, int64_t kc, float *panel) {
    if (columns == NR) {
        for (int64_t p = 0; p < kc; p++) memcpy(panel + p * NR, b + p * ldb, NR * sizeof(float));
        return;
    }
    for (int64_t p = 0; p < kc; p++) {
        memcpy(panel + p * NR, b + p * ldb, columns * sizeof(float));
        memset(panel + p * NR + columns, 0, (NR - columns) * sizeof(float));
    }
}

/* A block as the tiles see it: where it lies, its packed panels, its size, and how to get from row to row. */
typedef struct {
    const float *a, *b;
    float *c, *packed_a, *packed_b;
    int64_t lda, ldb, ldc, mc, nc, kc;
    int add;
} block;

/* Pack the block's part of A, or only its ragged last panel. */
static void pack_a(const block *x) {
    for (int64_t i = PACK_A ? 0 : x->mc / MR * MR; i < x->mc; i += MR)
        pack_rows(x->a + i * x->lda, x->lda, MIN(MR, x->mc - i), x->kc, x->packed_a + (PACK_A ? i * x->kc : 0));
}

static void pack_b(const block *x) {
    for (int64_t j = PACK_B ? 0 : x->nc / NR * NR; j < x->nc; j += NR)
        pack_columns(x->b + j, x->ldb, MIN(NR, x->nc - j), x->kc, x->packed_b + (PACK_B ? j * x->kc : 0));
}

/* The tile of C whose first element is (i, j) of the block; a ragged one is computed aside and copied. */
static inline __attribute__((always_inline)) void run_tile(const block *x, int64_t i, int64_t j) {
    int64_t rows = MIN(MR, x->mc - i), columns = MIN(NR, x->nc - j);
    int is_full = rows == MR && columns == NR;
    float aside[MR * NR] __attribute__((aligned(64)));
    float *c = x->c + i * x->ldc + j;
#if PACK_A
    const float *a = x->packed_a + i * x->kc;
    const int64_t a_row = 1;
#else
    const float *a = rows == MR ? x->a + i * x->lda : x->packed_a;
    const int64_t a_row = rows == MR ? x->lda : x->kc;
#endif
#if PACK_B
    const float *b = x->packed_b + j * x->kc;
    const int64_t b_step = NR;
#else
    const float *b = columns == NR ? x->b + j : x->packed_b;
    const int64_t b_step = columns == NR ? x->ldb : NR;
#endif
    tile(x->kc, a, a_row, b, b_step, is_full ? c : aside, is_full ? x->ldc : NR, is_full && x->add);
    if (is_full) return;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < columns; s++)
            c[r * x->ldc + s] = aside[r * NR + s] + (x->add ? c[r * x->ldc + s] : 0);
}

static void run_block(const block *x) {
#if ORDER == DOWN /* one panel of B stays in the first cache while all of A's block passes by */
    for (int64_t j = 0; j < x->nc; j += NR)
        for (int64_t i = 0; i < x->mc; i += MR) run_tile(x, i, j);
#else /* one panel of A stays, and B's block passes by */
    for (int64_t i = 0; i < x->mc; i += MR)
        for (int64_t j = 0; j < x->nc; j += NR) run_tile(x, i, j);
#endif
}

/* `panels` is the caller's room for packed panels: those of A, rounded up to 16 floats, then those of B. It is the same
 * from config to config, so that no config pays for touching new memory. */
int run(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k, int64_t mc, int64_t nc, int64_t kc,
        float *panels) {
    /* Blocks of whole tiles: only the last one of a row or column can be ragged. */
    mc = ROUND_UP(MIN(mc, m), MR);
    nc = ROUND_UP(MIN(nc, n), NR);
    kc = MIN(kc, k);
    block x = {.lda = k, .ldb = n, .ldc = n, .packed_a = panels};
    x.packed_b = panels + ROUND_UP((PACK_A ? mc : MR) * kc, 16);
    for (int64_t j = 0; j < n; j += nc)
        for (int64_t p = 0; p < k; p += kc) {
            x.nc = MIN(nc, n - j);
            x.kc = MIN(kc, k - p);
            x.b = b + p * n + j;
            x.add = p > 0;
            pack_b(&x);
            for (int64_t i = 0; i < m; i += mc) {
                x.mc = MIN(mc, m - i);
                x.a = a + i * k + p;
                x.c = c + i * n + j;
                pack_a(&x);
                run_block(&x);
            }
        }
    return 0;
}
