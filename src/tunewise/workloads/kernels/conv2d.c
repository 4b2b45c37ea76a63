/* Valid 2-D correlation of one float32 image with one filter, row-major, on one thread:
 *   out[y][x] = sum over (dy, dx) of filter[dy][dx] * image[y + dy][x + dx]
 *
 * Parameters (-D):
 *   ALGORITHM   GATHER: every output vector loads its own inputs
 *               SHARE:  an input vector is loaded once and used for all rows of the tile it touches
 *               AXPY:   whole output rows are built up in the first cache, one filter element at a time
 *   VECTOR      floats in a vector
 *   ROWS, NV    register tile: ROWS output rows by NV vectors
 *   FIXED       also compile the loops for filters of FIXED by FIXED, with their counts known; 0: do not
 *
 * The image is walked in strips of `strip` output columns, given at run time. A tile that would reach over the edge is
 * moved back inside and computes some outputs twice; only outputs smaller than one tile are computed plainly.
 */
#include <stdint.h>
#include <string.h>

#define GATHER 1
#define SHARE 2
#define AXPY 3
#if ALGORITHM != GATHER && ALGORITHM != SHARE && ALGORITHM != AXPY
#error "ALGORITHM must be GATHER, SHARE or AXPY"
#endif

#define WIDTH (NV * VECTOR)
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define ROUND_UP(x, step) (((x) + (step) - 1) / (step) * (step))
#define UNROLLED _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

typedef struct {
    const float *image, *filter;
    float *out;
    int64_t width;                 /* of the image */
    int64_t out_height, out_width; /* of the result */
} problem;

/* Build up `columns` outputs of one row, from column x on. */
INLINE void axpy_row(const problem *p, int64_t fh, int64_t fw, int64_t y, int64_t x, int64_t columns) {
    float *restrict out = p->out + y * p->out_width + x;
    memset(out, 0, columns * sizeof(float));
    for (int64_t dy = 0; dy < fh; dy++)
        for (int64_t dx = 0; dx < fw; dx++) {
            const float weight = p->filter[dy * fw + dx];
            const float *restrict in = p->image + (y + dy) * p->width + x + dx;
            for (int64_t i = 0; i < columns; i++) out[i] += weight * in[i];
        }
}

#if ALGORITHM != AXPY
/* One tile: ROWS by WIDTH outputs from (y, x) on, all held in registers. */
INLINE void tile(const problem *p, int64_t fh, int64_t fw, int64_t y, int64_t x) {
    const float *in = p->image + y * p->width + x;
    vector sum[ROWS][NV];
    UNROLLED
    for (int r = 0; r < ROWS; r++) {
        UNROLLED
        for (int v = 0; v < NV; v++) sum[r][v] = (vector){0};
    }
#if ALGORITHM == GATHER
    for (int64_t dy = 0; dy < fh; dy++)
        for (int64_t dx = 0; dx < fw; dx++) {
            const float weight = p->filter[dy * fw + dx];
            UNROLLED
            for (int r = 0; r < ROWS; r++) {
                UNROLLED
                for (int v = 0; v < NV; v++)
                    sum[r][v] += weight * *(const vector *)(in + (r + dy) * p->width + dx + v * VECTOR);
            }
        }
#else
    UNROLLED
    for (int64_t line = 0; line < ROWS + fh - 1; line++) /* of the image: it touches rows line - fh + 1 ... line */
        for (int64_t dx = 0; dx < fw; dx++) {
            vector shared[NV];
            UNROLLED
            for (int v = 0; v < NV; v++) shared[v] = *(const vector *)(in + line * p->width + dx + v * VECTOR);
            UNROLLED
            for (int r = 0; r < ROWS; r++) {
                if (line < r || line >= r + fh) continue;
                const float weight = p->filter[(line - r) * fw + dx];
                UNROLLED
                for (int v = 0; v < NV; v++) sum[r][v] += weight * shared[v];
            }
        }
#endif
    UNROLLED
    for (int r = 0; r < ROWS; r++) {
        UNROLLED
        for (int v = 0; v < NV; v++) *(vector *)(p->out + (y + r) * p->out_width + x + v * VECTOR) = sum[r][v];
    }
}
#endif

/* All outputs, strip by strip. */
INLINE void convolve(const problem *p, int64_t fh, int64_t fw, int64_t strip) {
#if ALGORITHM != AXPY
    if (p->out_height >= ROWS && p->out_width >= WIDTH) {
        for (int64_t left = 0; left < p->out_width; left += strip) {
            const int64_t right = MIN(left + strip, p->out_width);
            for (int64_t y = 0; y < p->out_height; y += ROWS)
                for (int64_t x = left; x < right; x += WIDTH)
                    tile(p, fh, fw, MIN(y, p->out_height - ROWS), MIN(x, p->out_width - WIDTH));
        }
        return;
    }
#endif
    for (int64_t left = 0; left < p->out_width; left += strip)
        for (int64_t y = 0; y < p->out_height; y++) axpy_row(p, fh, fw, y, left, MIN(strip, p->out_width - left));
}

/* `strip` of 0 means the whole width. */
int run(const float *image, const float *filter, float *out, int64_t height, int64_t width, int64_t fh, int64_t fw,
        int64_t strip) {
    problem p = {image, filter, out, width, height - fh + 1, width - fw + 1};
    strip = ROUND_UP(strip > 0 ? strip : p.out_width, WIDTH);
#if FIXED
    if (fh == FIXED && fw == FIXED) {
        convolve(&p, FIXED, FIXED, strip);
        return 0;
    }
#endif
    convolve(&p, fh, fw, strip);
    return 0;
}
