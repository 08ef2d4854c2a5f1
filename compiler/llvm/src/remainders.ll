; Exact remainders of floats; made of remainders.c, which says how.

define internal float @aerogel_fmod_f32(float noundef %0, float noundef %1) {
  %3 = bitcast float %0 to i32
  %4 = and i32 %3, -2147483648
  %5 = tail call float @llvm.fabs.f32(float %0)
  %6 = bitcast float %5 to i32
  %7 = tail call float @llvm.fabs.f32(float %1)
  %8 = bitcast float %7 to i32
  %9 = icmp eq i32 %8, 0
  %10 = icmp samesign ugt i32 %6, 2139095039
  %11 = select i1 %9, i1 true, i1 %10
  %12 = icmp samesign ugt i32 %8, 2139095040
  %13 = select i1 %11, i1 true, i1 %12
  br i1 %13, label %14, label %17

14:
  %15 = fmul float %0, %1
  %16 = fdiv float %15, %15
  br label %75

17:
  %18 = icmp samesign ult i32 %6, %8
  br i1 %18, label %75, label %19

19:
  %20 = lshr i32 %6, 23
  %21 = lshr i32 %8, 23
  %22 = and i32 %6, 8388607
  %23 = and i32 %8, 8388607
  %24 = zext nneg i32 %23 to i64
  %25 = icmp eq i32 %20, 0
  %26 = or disjoint i32 %22, 8388608
  %27 = tail call i32 @llvm.umax.i32(i32 %20, i32 1)
  %28 = icmp eq i32 %21, 0
  %29 = or disjoint i64 %24, 8388608
  %30 = tail call i32 @llvm.umax.i32(i32 %21, i32 1)
  %31 = select i1 %28, i64 %24, i64 %29
  %32 = sub nsw i32 %27, %30
  %33 = select i1 %25, i32 %22, i32 %26
  %34 = trunc nuw nsw i64 %31 to i32
  %35 = urem i32 %33, %34
  %36 = zext nneg i32 %35 to i64
  %37 = icmp sgt i32 %32, 0
  %38 = icmp ne i32 %35, 0
  %39 = select i1 %37, i1 %38, i1 false
  br i1 %39, label %40, label %51

40:
  %41 = phi i64 [ %47, %40 ], [ %36, %19 ]
  %42 = phi i32 [ %46, %40 ], [ %32, %19 ]
  %43 = tail call i32 @llvm.umin.i32(i32 %42, i32 40)
  %44 = zext nneg i32 %43 to i64
  %45 = shl nuw i64 %41, %44
  %46 = sub nsw i32 %42, %43
  %47 = urem i64 %45, %31
  %48 = icmp sgt i32 %46, 0
  %49 = icmp ne i64 %47, 0
  %50 = select i1 %48, i1 %49, i1 false
  br i1 %50, label %40, label %51

51:
  %52 = phi i64 [ %36, %19 ], [ %47, %40 ]
  %53 = phi i1 [ %38, %19 ], [ %49, %40 ]
  br i1 %53, label %54, label %72

54:
  %55 = tail call range(i64 0, 65) i64 @llvm.ctlz.i64(i64 %52, i1 true)
  %56 = trunc nuw nsw i64 %55 to i32
  %57 = add nsw i32 %56, -40
  %58 = sub nsw i32 %30, %57
  %59 = icmp sgt i32 %58, 0
  %60 = trunc nuw nsw i64 %52 to i32
  br i1 %59, label %61, label %66

61:
  %62 = shl i32 %60, %57
  %63 = and i32 %62, 8388607
  %64 = shl nuw nsw i32 %58, 23
  %65 = or disjoint i32 %63, %64
  br label %69

66:
  %67 = add nsw i32 %30, -1
  %68 = shl i32 %60, %67
  br label %69

69:
  %70 = phi i32 [ %65, %61 ], [ %68, %66 ]
  %71 = or i32 %70, %4
  br label %72

72:
  %73 = phi i32 [ %71, %69 ], [ %4, %51 ]
  %74 = bitcast i32 %73 to float
  br label %75

75:
  %76 = phi float [ %16, %14 ], [ %74, %72 ], [ %0, %17 ]
  ret float %76
}

define internal double @aerogel_fmod_f64(double noundef %0, double noundef %1) {
  %3 = bitcast double %0 to i64
  %4 = and i64 %3, -9223372036854775808
  %5 = tail call double @llvm.fabs.f64(double %0)
  %6 = bitcast double %5 to i64
  %7 = tail call double @llvm.fabs.f64(double %1)
  %8 = bitcast double %7 to i64
  %9 = icmp eq i64 %8, 0
  %10 = icmp samesign ugt i64 %6, 9218868437227405311
  %11 = select i1 %9, i1 true, i1 %10
  %12 = icmp samesign ugt i64 %8, 9218868437227405312
  %13 = select i1 %11, i1 true, i1 %12
  br i1 %13, label %14, label %17

14:
  %15 = fmul double %0, %1
  %16 = fdiv double %15, %15
  br label %76

17:
  %18 = icmp samesign ult i64 %6, %8
  br i1 %18, label %76, label %19

19:
  %20 = lshr i64 %6, 52
  %21 = lshr i64 %8, 52
  %22 = trunc nuw nsw i64 %21 to i32
  %23 = and i64 %6, 4503599627370495
  %24 = and i64 %8, 4503599627370495
  %25 = icmp eq i64 %20, 0
  %26 = trunc nuw nsw i64 %20 to i32
  %27 = or disjoint i64 %23, 4503599627370496
  %28 = select i1 %25, i32 1, i32 %26
  %29 = select i1 %25, i64 %23, i64 %27
  %30 = icmp eq i64 %21, 0
  %31 = or disjoint i64 %24, 4503599627370496
  %32 = select i1 %30, i32 1, i32 %22
  %33 = select i1 %30, i64 %24, i64 %31
  %34 = sub nsw i32 %28, %32
  %35 = urem i64 %29, %33
  %36 = icmp sgt i32 %34, 0
  %37 = icmp ne i64 %35, 0
  %38 = select i1 %36, i1 %37, i1 false
  br i1 %38, label %39, label %50

39:
  %40 = phi i64 [ %46, %39 ], [ %35, %19 ]
  %41 = phi i32 [ %45, %39 ], [ %34, %19 ]
  %42 = tail call i32 @llvm.umin.i32(i32 %41, i32 11)
  %43 = zext nneg i32 %42 to i64
  %44 = shl nuw i64 %40, %43
  %45 = sub nsw i32 %41, %42
  %46 = urem i64 %44, %33
  %47 = icmp sgt i32 %45, 0
  %48 = icmp ne i64 %46, 0
  %49 = select i1 %47, i1 %48, i1 false
  br i1 %49, label %39, label %50

50:
  %51 = phi i64 [ %35, %19 ], [ %46, %39 ]
  %52 = phi i1 [ %37, %19 ], [ %48, %39 ]
  br i1 %52, label %53, label %73

53:
  %54 = tail call range(i64 0, 65) i64 @llvm.ctlz.i64(i64 %51, i1 true)
  %55 = trunc nuw nsw i64 %54 to i32
  %56 = add nsw i32 %55, -11
  %57 = sub nsw i32 %32, %56
  %58 = icmp sgt i32 %57, 0
  br i1 %58, label %59, label %66

59:
  %60 = zext nneg i32 %56 to i64
  %61 = shl i64 %51, %60
  %62 = and i64 %61, 4503599627370495
  %63 = zext nneg i32 %57 to i64
  %64 = shl nuw nsw i64 %63, 52
  %65 = or disjoint i64 %62, %64
  br label %70

66:
  %67 = add nsw i32 %32, -1
  %68 = zext nneg i32 %67 to i64
  %69 = shl i64 %51, %68
  br label %70

70:
  %71 = phi i64 [ %65, %59 ], [ %69, %66 ]
  %72 = or i64 %71, %4
  br label %73

73:
  %74 = phi i64 [ %72, %70 ], [ %4, %50 ]
  %75 = bitcast i64 %74 to double
  br label %76

76:
  %77 = phi double [ %16, %14 ], [ %75, %73 ], [ %0, %17 ]
  ret double %77
}
