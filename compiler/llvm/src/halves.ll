; Conversions of halves for processors without instructions for them. The code generator calls functions of these names,
; which not every C library has. They give what the instructions give, NaN by its bits too.

define weak_odr hidden float @__extendhfsf2(half %h) nounwind {
  %bits = bitcast half %h to i16
  %word = zext i16 %bits to i32
  %sign = and i32 %word, 32768
  %signed = shl i32 %sign, 16
  %size = and i32 %word, 32767
  %shifted = shl i32 %size, 13
  ; Exponents differ by 112: a product by 2^112 makes normal numbers of subnormal ones too.
  %small = bitcast i32 %shifted to float
  %scaled = fmul float %small, 0x46F0000000000000
  %number = bitcast float %scaled to i32
  %special = icmp uge i32 %size, 31744
  %full = or i32 %shifted, 2139095040
  %nan = icmp ugt i32 %size, 31744
  %quiet = or i32 %full, 4194304
  %kept = select i1 %nan, i32 %quiet, i32 %full
  %chosen = select i1 %special, i32 %kept, i32 %number
  %all = or i32 %chosen, %signed
  %result = bitcast i32 %all to float
  ret float %result
}

define weak_odr hidden half @__truncsfhf2(float %x) nounwind {
  %word = bitcast float %x to i32
  %high = lshr i32 %word, 16
  %sign = and i32 %high, 32768
  %size = and i32 %word, 2147483647
  ; Subnormal: adding 1/2 shifts the bits that stay into place, and rounds.
  %float = bitcast i32 %size to float
  %moved = fadd float %float, 5.000000e-01
  %moved.bits = bitcast float %moved to i32
  %subnormal = sub i32 %moved.bits, 1056964608
  ; Normal: to the nearest, and of two to the even one.
  %odd.bit = lshr i32 %size, 13
  %odd = and i32 %odd.bit, 1
  ; -112 * 2^23 + 4095
  %rebased = add i32 %size, -939520001
  %rounded = add i32 %rebased, %odd
  %normal = lshr i32 %rounded, 13
  %is.small = icmp ult i32 %size, 947912704
  %number = select i1 %is.small, i32 %subnormal, i32 %normal
  ; 65536 and more
  %is.large = icmp uge i32 %size, 1199570944
  %finite = select i1 %is.large, i32 31744, i32 %number
  %payload.bits = lshr i32 %size, 13
  %payload = and i32 %payload.bits, 511
  %nan.bits = or i32 %payload, 32256
  %is.nan = icmp ugt i32 %size, 2139095040
  %chosen = select i1 %is.nan, i32 %nan.bits, i32 %finite
  %all = or i32 %chosen, %sign
  %short = trunc i32 %all to i16
  %result = bitcast i16 %short to half
  ret half %result
}

