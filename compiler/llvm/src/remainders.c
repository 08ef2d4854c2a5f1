// The remainder of floats, exactly, as C's `fmod`: long division of the mantissas, as many bits at a time as a word has room for.
// LLVM computes `x - trunc(x / y) * y` for GPUs, which is wrong where the quotient has more bits than a mantissa.
//
// remainders.ll is made of it: clang-22 --target=nvptx64-nvidia-cuda -O2 -S -emit-llvm -nocudalib, without attributes.

typedef unsigned int u32;
typedef unsigned long long u64;

#define REMAINDER(NAME, F, U, BITS, MANTISSA, EXPONENTS, CHUNK) \
F NAME(F x, F y) { \
  U ux = __builtin_bit_cast(U, x), uy = __builtin_bit_cast(U, y); \
  U top = (U)1 << (BITS - 1), sign = ux & top; \
  ux &= ~top; uy &= ~top; \
  U inf = (U)EXPONENTS << MANTISSA; \
  if (uy == 0 || ux >= inf || uy > inf) { F p = x * y; return p / p; } \
  if (ux < uy) return x; \
  int ex = (int)(ux >> MANTISSA), ey = (int)(uy >> MANTISSA); \
  U frac = ((U)1 << MANTISSA) - 1; \
  u64 mx = ux & frac, my = uy & frac; \
  if (ex) mx |= (u64)1 << MANTISSA; else ex = 1; \
  if (ey) my |= (u64)1 << MANTISSA; else ey = 1; \
  int n = ex - ey; \
  mx %= my; \
  while (n > 0 && mx) { int k = n < CHUNK ? n : CHUNK; mx = (mx << k) % my; n -= k; } \
  if (!mx) return __builtin_bit_cast(F, sign); \
  int up = __builtin_clzll(mx) - (63 - MANTISSA); \
  U bits; \
  if (ey - up >= 1) bits = (((U)mx << up) & frac) | ((U)(ey - up) << MANTISSA); \
  else bits = (U)mx << (ey - 1); \
  return __builtin_bit_cast(F, bits | sign); \
}

REMAINDER(aerogel_fmod_f32, float, u32, 32, 23, 255, 40)
REMAINDER(aerogel_fmod_f64, double, u64, 64, 52, 2047, 11)
