/* arrays.c - arrays, texture and surface objects. Their handles are the driver's. */
#include "cudart.h"

#define A(array) ((CUarray)(uintptr_t)(const void *)(array))
#define M(array) ((CUmipmappedArray)(uintptr_t)(const void *)(array))

/* --- formats --------------------------------------------------------------------------------- */

static bool format_of(const struct cudaChannelFormatDesc *d, CUarray_format *format, unsigned *channels) {
    static const struct {
        enum cudaChannelFormatKind kind;
        int bits;
        CUarray_format format;
    } known[] = {{cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
                 {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
                 {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
                 {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
                 {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
                 {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
                 {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
                 {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT}};
    if (!d || d->x <= 0 || (d->y && d->y != d->x) || (d->z && d->z != d->x) || (d->w && d->w != d->x)) return false;
    if ((d->z && !d->y) || (d->w && !d->z)) return false;
    *channels = 1u + (d->y != 0) + (d->z != 0) + (d->w != 0);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].kind == d->f && known[k].bits == d->x) {
            *format = known[k].format;
            return true;
        }
    return false;
}

static struct cudaChannelFormatDesc channels_of(CUarray_format format, unsigned channels) {
    bool is_float = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT;
    bool is_signed = format == CU_AD_FORMAT_SIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT16
                     || format == CU_AD_FORMAT_SIGNED_INT32;
    int bits = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8 ? 8
               : format == CU_AD_FORMAT_UNSIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT16
                       || format == CU_AD_FORMAT_HALF
                   ? 16
                   : 32;
    return (struct cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                          channels > 3 ? bits : 0,
                                          is_float    ? cudaChannelFormatKindFloat
                                          : is_signed ? cudaChannelFormatKindSigned
                                                      : cudaChannelFormatKindUnsigned};
}

/* --- arrays ---------------------------------------------------------------------------------- */

static struct cudaExtent extent_of(size_t width, size_t height, size_t depth) {
    return (struct cudaExtent){width, height, depth};
}
static CUresult describe(const struct cudaChannelFormatDesc *d, struct cudaExtent e, unsigned flags,
                         CUDA_ARRAY3D_DESCRIPTOR *out) {
    CUarray_format format;
    unsigned channels;
    if (!format_of(d, &format, &channels)) return (CUresult)cudaErrorInvalidChannelDescriptor;
    *out = (CUDA_ARRAY3D_DESCRIPTOR){e.width, e.height, e.depth, format, channels, flags};
    return CUDA_SUCCESS;
}
cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *d, struct cudaExtent e,
                              unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR a;
    CUresult code = out ? describe(d, e, flags, &a) : CUDA_ERROR_INVALID_VALUE;
    CALL(code ? code : cuArray3DCreate((CUarray *)out, &a));
}
cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *d, size_t width, size_t height,
                            unsigned flags) {
    return cudaMalloc3DArray(out, d, extent_of(width, height, 0), flags);
}
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *d,
                                     struct cudaExtent e, unsigned levels, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR a;
    CUresult code = out ? describe(d, e, flags, &a) : CUDA_ERROR_INVALID_VALUE;
    CALL(code ? code : cuMipmappedArrayCreate((CUmipmappedArray *)out, &a, levels));
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t m, unsigned level) {
    CALL(cuMipmappedArrayGetLevel((CUarray *)out, M(m), level));
}
cudaError_t cudaFreeArray(cudaArray_t a) { CALL(a ? cuArrayDestroy(A(a)) : CUDA_SUCCESS); }
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t m) {
    CALL(m ? cuMipmappedArrayDestroy(M(m)) : CUDA_SUCCESS);
}
cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *d, struct cudaExtent *e, unsigned *flags, cudaArray_t a) {
    CUDA_ARRAY3D_DESCRIPTOR got;
    CUresult code = runtime_ready();
    if (!code) code = cuArray3DGetDescriptor(&got, A(a));
    if (code) return runtime_keep(code);
    if (d) *d = channels_of(got.Format, got.NumChannels);
    if (e) *e = extent_of(got.Width, got.Height, got.Depth);
    if (flags) *flags = got.Flags;
    return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *d, cudaArray_const_t a) {
    return d ? cudaArrayGetInfo(d, NULL, NULL, (cudaArray_t)(uintptr_t)a) : runtime_keep(CUDA_ERROR_INVALID_VALUE);
}
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *out, const struct cudaChannelFormatDesc *d, int device) {
    CUarray_format format;
    unsigned channels;
    int most = 0;
    if (!out || !format_of(d, &format, &channels)) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    CUresult code = runtime_ready();
    if (!code) code = cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, device);
    *out = (size_t)most;
    return runtime_keep(code);
}

/* Bytes of a texel; 0: no array. */
size_t runtime_texel_bytes(const void *array) {
    struct cudaChannelFormatDesc d;
    if (cudaArrayGetInfo(&d, NULL, NULL, (cudaArray_t)(uintptr_t)array)) return 0;
    return (size_t)(d.x + d.y + d.z + d.w) / 8;
}

/* --- texture and surface objects ------------------------------------------------------------- */

static CUresult resource_of(const struct cudaResourceDesc *r, CUDA_RESOURCE_DESC *out) {
    if (!r) return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    switch (r->resType) {
    case cudaResourceTypeArray:
        out->resType = CU_RESOURCE_TYPE_ARRAY;
        out->res.array.hArray = A(r->res.array.array);
        return CUDA_SUCCESS;
    case cudaResourceTypeMipmappedArray:
        out->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        out->res.mipmap.hMipmappedArray = M(r->res.mipmap.mipmap);
        return CUDA_SUCCESS;
    case cudaResourceTypeLinear:
        out->resType = CU_RESOURCE_TYPE_LINEAR;
        out->res.linear.devPtr = D(r->res.linear.devPtr);
        out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        return format_of(&r->res.linear.desc, &out->res.linear.format, &out->res.linear.numChannels)
                   ? CUDA_SUCCESS
                   : (CUresult)cudaErrorInvalidChannelDescriptor;
    case cudaResourceTypePitch2D:
        out->resType = CU_RESOURCE_TYPE_PITCH2D;
        out->res.pitch2D.devPtr = D(r->res.pitch2D.devPtr);
        out->res.pitch2D.width = r->res.pitch2D.width;
        out->res.pitch2D.height = r->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        return format_of(&r->res.pitch2D.desc, &out->res.pitch2D.format, &out->res.pitch2D.numChannels)
                   ? CUDA_SUCCESS
                   : (CUresult)cudaErrorInvalidChannelDescriptor;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static void resource_back(const CUDA_RESOURCE_DESC *r, struct cudaResourceDesc *out) {
    memset(out, 0, sizeof *out);
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        out->resType = cudaResourceTypeArray;
        out->res.array.array = (cudaArray_t)r->res.array.hArray;
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        out->resType = cudaResourceTypeMipmappedArray;
        out->res.mipmap.mipmap = (cudaMipmappedArray_t)r->res.mipmap.hMipmappedArray;
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        out->resType = cudaResourceTypeLinear;
        out->res.linear.devPtr = (void *)(uintptr_t)r->res.linear.devPtr;
        out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        out->res.linear.desc = channels_of(r->res.linear.format, r->res.linear.numChannels);
        break;
    default:
        out->resType = cudaResourceTypePitch2D;
        out->res.pitch2D.devPtr = (void *)(uintptr_t)r->res.pitch2D.devPtr;
        out->res.pitch2D.width = r->res.pitch2D.width;
        out->res.pitch2D.height = r->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        out->res.pitch2D.desc = channels_of(r->res.pitch2D.format, r->res.pitch2D.numChannels);
    }
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const struct cudaResourceDesc *r,
                                    const struct cudaTextureDesc *t, const struct cudaResourceViewDesc *v) {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC d;
    CUDA_RESOURCE_VIEW_DESC view;
    CUresult code = out && t ? resource_of(r, &resource) : CUDA_ERROR_INVALID_VALUE;
    if (code) return runtime_keep(code);
    memset(&d, 0, sizeof d);
    for (int k = 0; k < 3; k++) d.addressMode[k] = (CUaddress_mode)t->addressMode[k];
    d.filterMode = (CUfilter_mode)t->filterMode;
    d.flags = (t->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0)
              | (t->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) | (t->sRGB ? CU_TRSF_SRGB : 0)
              | (t->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0)
              | (t->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
    d.maxAnisotropy = t->maxAnisotropy;
    d.mipmapFilterMode = (CUfilter_mode)t->mipmapFilterMode;
    d.mipmapLevelBias = t->mipmapLevelBias;
    d.minMipmapLevelClamp = t->minMipmapLevelClamp;
    d.maxMipmapLevelClamp = t->maxMipmapLevelClamp;
    memcpy(d.borderColor, t->borderColor, sizeof d.borderColor);
    memset(&view, 0, sizeof view);
    if (v) {
        view.format = (CUresourceViewFormat)v->format;
        view.width = v->width, view.height = v->height, view.depth = v->depth;
        view.firstMipmapLevel = v->firstMipmapLevel, view.lastMipmapLevel = v->lastMipmapLevel;
        view.firstLayer = v->firstLayer, view.lastLayer = v->lastLayer;
    }
    CALL(cuTexObjectCreate((CUtexObject *)out, &resource, &d, v ? &view : NULL));
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t t) { CALL(t ? cuTexObjectDestroy(t) : CUDA_SUCCESS); }

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const struct cudaResourceDesc *r) {
    CUDA_RESOURCE_DESC resource;
    CUresult code = out ? resource_of(r, &resource) : CUDA_ERROR_INVALID_VALUE;
    CALL(code ? code : cuSurfObjectCreate((CUsurfObject *)out, &resource));
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t s) { CALL(s ? cuSurfObjectDestroy(s) : CUDA_SUCCESS); }

static cudaError_t keep_resource(CUresult code, const CUDA_RESOURCE_DESC *r, struct cudaResourceDesc *out) {
    if (!code && !out) code = CUDA_ERROR_INVALID_VALUE;
    if (!code) resource_back(r, out);
    return runtime_keep(code);
}
cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *out, cudaTextureObject_t t) {
    CUDA_RESOURCE_DESC r;
    CUresult code = runtime_ready();
    return keep_resource(code ? code : cuTexObjectGetResourceDesc(&r, t), &r, out);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *out, cudaSurfaceObject_t s) {
    CUDA_RESOURCE_DESC r;
    CUresult code = runtime_ready();
    return keep_resource(code ? code : cuSurfObjectGetResourceDesc(&r, s), &r, out);
}
cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *out, cudaTextureObject_t t) {
    CUDA_TEXTURE_DESC d;
    CUresult code = runtime_ready();
    if (!code) code = cuTexObjectGetTextureDesc(&d, t);
    if (!code && !out) code = CUDA_ERROR_INVALID_VALUE;
    if (code) return runtime_keep(code);
    memset(out, 0, sizeof *out);
    for (int k = 0; k < 3; k++) out->addressMode[k] = (enum cudaTextureAddressMode)d.addressMode[k];
    out->filterMode = (enum cudaTextureFilterMode)d.filterMode;
    out->readMode = d.flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    out->normalizedCoords = (d.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    out->sRGB = (d.flags & CU_TRSF_SRGB) != 0;
    out->disableTrilinearOptimization = (d.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    out->seamlessCubemap = (d.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    out->maxAnisotropy = d.maxAnisotropy;
    out->mipmapFilterMode = (enum cudaTextureFilterMode)d.mipmapFilterMode;
    out->mipmapLevelBias = d.mipmapLevelBias;
    out->minMipmapLevelClamp = d.minMipmapLevelClamp;
    out->maxMipmapLevelClamp = d.maxMipmapLevelClamp;
    memcpy(out->borderColor, d.borderColor, sizeof d.borderColor);
    return cudaSuccess;
}
cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *out, cudaTextureObject_t t) {
    CUDA_RESOURCE_VIEW_DESC v;
    CUresult code = runtime_ready();
    if (!code) code = cuTexObjectGetResourceViewDesc(&v, t);
    if (!code && !out) code = CUDA_ERROR_INVALID_VALUE;
    if (code) return runtime_keep(code);
    memset(out, 0, sizeof *out);
    out->format = (enum cudaResourceViewFormat)v.format;
    out->width = v.width, out->height = v.height, out->depth = v.depth;
    out->firstMipmapLevel = v.firstMipmapLevel, out->lastMipmapLevel = v.lastMipmapLevel;
    out->firstLayer = v.firstLayer, out->lastLayer = v.lastLayer;
    return cudaSuccess;
}
