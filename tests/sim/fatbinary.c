/* fatbinary.c - finds the PTX in a fat binary, as nvcc puts it into programs; cubins are ignored.
 *
 * A fat binary begins with { u32 magic, u16 version, u16 size of this header, u64 bytes that follow }; then
 * come images, each { u16 kind, u16 version, u32 size of this header, u64 bytes that follow, u32 compressed
 * bytes, ..., at 28: u32 sm, at 40: u64 flags }. Compressed images are not unpacked: nvcc --no-compress. */
#include "driver.h"

#define WRAPPER 0x466243b1u            /* a __fatBinC_Wrapper_t of the toolkit's fatbinary_section.h */
#define HEADER  0xba55ed50u
enum { HEADER_SIZE = 16, IMAGE_LEAST = 64, KIND_PTX = 1, COMPRESSED_LZ4 = 0x2000, COMPRESSED_ZSTD = 0x8000,
       MOST_BYTES = 1 << 30 };

typedef struct wrapper { uint32_t magic, version; const void *data, *more; } wrapper;

static uint16_t u16_at(const uint8_t *p) { uint16_t v; memcpy(&v, p, sizeof v); return v; }
static uint32_t u32_at(const uint8_t *p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }
static uint64_t u64_at(const uint8_t *p) { uint64_t v; memcpy(&v, p, sizeof v); return v; }

bool sim_is_fatbinary(const void *image)
{
    const uint8_t *p = image;          /* by bytes: a text may be shorter than a magic number */
    return (p[0] == 0x50 && p[1] == 0xed && p[2] == 0x55 && p[3] == 0xba)
           || (p[0] == 0xb1 && p[1] == 0x43 && p[2] == 0x62 && p[3] == 0x46);
}

/* The letter after the chip's number in a text's .target (sm_90a), or 0; the image's header does not tell it. */
static char suffix_of(const char *text, size_t length)
{
    static const char key[] = ".target";
    const char *end = text + length, *p = text;
    for (; end - p > (ptrdiff_t)sizeof key; p++) {
        if (*p == '/' && p[1] == '/') { /* nvcc's texts begin with comments */
            while (p < end - 1 && *p != '\n') p++;
            continue;
        }
        if (!memcmp(p, key, sizeof key - 1)) break;
    }
    if (end - p <= (ptrdiff_t)sizeof key) return 0;
    for (p += sizeof key - 1; p < end && (*p == ' ' || *p == '\t');) p++;
    while (p < end && *p != '_' && *p != '\n') p++;
    for (p += p < end; p < end && *p >= '0' && *p <= '9';) p++;
    return p < end && (*p == 'a' || *p == 'f') ? *p : 0;
}

/* Rates PTX for a chip on this device; 0: it does not run. */
static uint32_t rate_target(uint32_t sm, char suffix)
{
    uint32_t here = sim_the_device()->sm;
    if (sm > here || (suffix == 'a' && sm != here) || (suffix == 'f' && sm / 10 != here / 10)) return 0;
    return sm * 2 + (suffix != 0);
}

/* Finds the PTX of the highest chip that runs here; of the same chip, that with a suffix. */
int sim_fatbinary_text(const void *image, const char **text, size_t *length)
{
    const uint8_t *p = image, *end;
    uint32_t best = 0;
    bool packed = false;
    if (u32_at(p) == WRAPPER) {
        wrapper w;
        memcpy(&w, image, sizeof w);
        if (!(p = w.data) || u32_at(p) != HEADER) return CU_INVALID_IMAGE;
    }
    if (u16_at(p + 4) != 1 || u16_at(p + 6) < HEADER_SIZE || u64_at(p + 8) > MOST_BYTES)
        return CU_INVALID_IMAGE;
    end = p + u16_at(p + 6) + u64_at(p + 8);
    for (p += u16_at(p + 6); end - p >= IMAGE_LEAST;) {
        uint32_t head = u32_at(p + 4), sm = u32_at(p + 28);
        uint64_t bytes = u64_at(p + 8), left = (uint64_t)(end - p);
        if (head < IMAGE_LEAST || head > left || bytes > left - head) return CU_INVALID_IMAGE;
        const char *ptx = (const char *)p + head;
        size_t size = u16_at(p) == KIND_PTX ? strnlen(ptx, (size_t)bytes) : 0;
        bool small = u64_at(p + 40) & (COMPRESSED_LZ4 | COMPRESSED_ZSTD);
        uint32_t fits = u16_at(p) == KIND_PTX ? rate_target(sm, small ? 0 : suffix_of(ptx, size)) : 0;
        if (fits > best) {
            packed = small;
            best = fits;
            *text = ptx;
            *length = size;
        }
        p += head + bytes;
    }
    if (packed && !sim_option.quiet)
        fprintf(stderr, "ptxsim: the PTX of this fat binary is compressed; build with nvcc --no-compress\n");
    return !best ? CU_NO_BINARY : packed ? CU_INVALID_IMAGE : CU_OK;
}
