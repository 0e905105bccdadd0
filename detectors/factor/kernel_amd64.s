#include "textflag.h"

// These functions add in the same order as the plain ones, and do not fuse multiplications with additions. Their results
// are therefore identical. They do not check lengths.

// COLUMNS adds the product of a strip at SI and the R10 numbers at DX to even. Rows are the lanes of a register with the
// given number of bytes. Even and odd columns have separate sums, since each addition waits for the one before it.
#define COLUMNS(even, odd, left, right, bytes, two, one, end) \
	VXORPS       odd, odd, odd           \
	XORQ         R8, R8                  \
	MOVQ         R10, R11                \
	SUBQ         $2, R11                 \
	JLT          one                     \
two: \
	VBROADCASTSS (DX)(R8*4), left        \
	VBROADCASTSS 4(DX)(R8*4), right      \
	VMULPS       (SI), left, left        \
	VMULPS       bytes(SI), right, right \
	VADDPS       left, even, even        \
	VADDPS       right, odd, odd         \
	ADDQ         $(2*bytes), SI          \
	ADDQ         $2, R8                  \
	CMPQ         R8, R11                 \
	JLE          two                     \
one: \
	CMPQ         R8, R10                 \
	JGE          end                     \
	VBROADCASTSS (DX)(R8*4), left        \
	VMULPS       (SI), left, left        \
	VADDPS       left, even, even        \
	ADDQ         $bytes, SI              \
end: \
	VADDPS       odd, even, even

// func squaredLengthAVX2(strips, x []float32) float32
TEXT ·squaredLengthAVX2(SB), NOSPLIT, $0-52
	MOVQ   strips_base+0(FP), SI
	MOVQ   x_base+24(FP), DX
	MOVQ   x_len+32(FP), CX
	XORQ   R10, R10
	VXORPS Y2, Y2, Y2            // sums of squares

strip:
	MOVQ    CX, R9               // rows that are left
	SUBQ    R10, R9
	JLE     sum
	CMPQ    R9, $4
	JLE     four
	ADDQ    $8, R10              // a triangle has no columns beyond its last row
	CMPQ    R10, CX
	CMOVQGT CX, R10
	VMOVUPS (SI), Y0
	ADDQ    $32, SI
	COLUMNS(Y0, Y3, Y1, Y4, 32, two8, one8, end8)
	VMULPS  Y0, Y0, Y0
	VADDPS  Y0, Y2, Y2
	JMP     strip

four:
	MOVQ    CX, R10
	VMOVUPS (SI), X0
	ADDQ    $16, SI
	COLUMNS(X0, X3, X1, X4, 16, two4, one4, end4)
	VMULPS  X0, X0, X0           // the other lanes become 0
	VADDPS  Y0, Y2, Y2

sum:
	VEXTRACTF128 $1, Y2, X0
	VADDPS       X0, X2, X2
	VPSHUFD      $0xB1, X2, X0
	VADDPS       X0, X2, X2
	VMOVHLPS     X2, X2, X0
	VADDSS       X0, X2, X2
	VMOVSS       X2, ret+48(FP)
	VZEROUPPER
	RET

// func linearAVX2(y, strips, x []float32)
TEXT ·linearAVX2(SB), NOSPLIT, $0-72
	MOVQ y_base+0(FP), DI
	MOVQ y_len+8(FP), CX     // rows that are left
	MOVQ strips_base+24(FP), SI
	MOVQ x_base+48(FP), DX
	MOVQ x_len+56(FP), R10

strip:
	CMPQ    CX, $4
	JLE     four
	VMOVUPS (SI), Y0
	ADDQ    $32, SI
	COLUMNS(Y0, Y3, Y1, Y4, 32, two8, one8, end8)
	VMOVUPS X0, (DI)
	VEXTRACTF128 $1, Y0, X0
	ADDQ    $16, DI
	SUBQ    $4, CX
	CMPQ    CX, $4
	JLT     few
	VMOVUPS X0, (DI)
	ADDQ    $16, DI
	SUBQ    $4, CX
	JMP     strip

four:
	CMPQ    CX, $0
	JLE     done
	VMOVUPS (SI), X0
	ADDQ    $16, SI
	COLUMNS(X0, X3, X1, X4, 16, two4, one4, end4)
	CMPQ    CX, $4
	JLT     few
	VMOVUPS X0, (DI)
	JMP     done

few:
	VMOVSS  X0, (DI)
	VPSHUFD $0x39, X0, X0 // the next row is the first
	ADDQ    $4, DI
	DECQ    CX
	JNE     few

done:
	VZEROUPPER
	RET

// func ranksAVX2(ranks, laws, keys []int32, size int)
TEXT ·ranksAVX2(SB), NOSPLIT, $0-80
	MOVQ ranks_base+0(FP), DI
	MOVQ laws_base+24(FP), SI
	MOVQ keys_base+48(FP), DX
	MOVQ keys_len+56(FP), CX
	MOVQ size+72(FP), R9

law:
	DECQ         CX
	JLT          done
	VPBROADCASTD (DX), Y0
	MOVL         (DX), R11
	ADDQ         $4, DX
	VPXOR        Y1, Y1, Y1
	VPXOR        Y2, Y2, Y2
	MOVQ         R9, R8
	SUBQ         $16, R8
	JLT          sum

sixteen:
	VPCMPGTD (SI), Y0, Y3
	VPCMPGTD 32(SI), Y0, Y4
	VPSUBD   Y3, Y1, Y1 // minus -1 for each value below the key
	VPSUBD   Y4, Y2, Y2
	ADDQ     $64, SI
	SUBQ     $16, R8
	JGE      sixteen

sum:
	VPADDD       Y2, Y1, Y1
	VEXTRACTI128 $1, Y1, X2
	VPADDD       X2, X1, X1
	VPSHUFD      $0x4E, X1, X2
	VPADDD       X2, X1, X1
	VPSHUFD      $0xB1, X1, X2
	VPADDD       X2, X1, X1
	VMOVD        X1, AX
	ADDQ         $16, R8
	JEQ          next

one:
	XORL  BX, BX
	CMPL  R11, (SI)
	SETGT BX
	ADDL  BX, AX
	ADDQ  $4, SI
	DECQ  R8
	JNE   one

next:
	MOVL AX, (DI)
	ADDQ $4, DI
	JMP  law

done:
	VZEROUPPER
	RET
