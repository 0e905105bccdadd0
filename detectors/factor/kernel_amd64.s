#include "go_asm.h"
#include "textflag.h"

// These functions add in the same order as the plain ones, and do not fuse multiplications with additions. Their results
// are therefore identical. They do not check lengths.

// PAIR adds the products of the numbers 2*i and 2*i+1 at R8 and their columns of a strip at SI to even and odd.
#define PAIR(i, even, odd, left, right, bytes) \
	VBROADCASTSS (8*i)(R8), left               \
	VBROADCASTSS (8*i+4)(R8), right            \
	VMULPS       (2*i*bytes)(SI), left, left   \
	VMULPS       ((2*i+1)*bytes)(SI), right, right \
	VADDPS       left, even, even              \
	VADDPS       right, odd, odd

// COLUMNS adds the product of a strip at SI and the R10 numbers at DX to even. Rows are the lanes of a register with the
// given number of bytes. Even and odd columns have separate sums, since each addition waits for the one before it.
#define COLUMNS(even, odd, left, right, bytes, eight, few, two, one, end) \
	VXORPS       odd, odd, odd             \
	MOVQ         DX, R8                    \
	MOVQ         R10, R11                  \
	SUBQ         $8, R11                   \
	JLT          few                       \
eight: \
	PAIR(0, even, odd, left, right, bytes) \
	PAIR(1, even, odd, left, right, bytes) \
	PAIR(2, even, odd, left, right, bytes) \
	PAIR(3, even, odd, left, right, bytes) \
	ADDQ         $32, R8                   \
	ADDQ         $(8*bytes), SI            \
	SUBQ         $8, R11                   \
	JGE          eight                     \
few: \
	ADDQ         $6, R11                   \
	JLT          one                       \
two: \
	PAIR(0, even, odd, left, right, bytes) \
	ADDQ         $8, R8                    \
	ADDQ         $(2*bytes), SI            \
	SUBQ         $2, R11                   \
	JGE          two                       \
one: \
	CMPQ         R11, $-1                  \
	JNE          end                       \
	VBROADCASTSS (R8), left                \
	VMULPS       (SI), left, left          \
	VADDPS       left, even, even          \
	ADDQ         $bytes, SI                \
end: \
	VADDPS       odd, even, even

// squared computes the squared length of the CX numbers at DX with the strips at SI. The result is in X2.
TEXT squared<>(SB), NOSPLIT, $0-0
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
	COLUMNS(Y0, Y3, Y1, Y4, 32, eight8, few8, two8, one8, end8)
	VMULPS  Y0, Y0, Y0
	VADDPS  Y0, Y2, Y2
	JMP     strip

four:
	MOVQ    CX, R10
	VMOVUPS (SI), X0
	ADDQ    $16, SI
	COLUMNS(X0, X3, X1, X4, 16, eight4, few4, two4, one4, end4)
	VMULPS  X0, X0, X0           // the other lanes become 0
	VADDPS  Y0, Y2, Y2

sum:
	VEXTRACTF128 $1, Y2, X0
	VADDPS       X0, X2, X2
	VPSHUFD      $0xB1, X2, X0
	VADDPS       X0, X2, X2
	VMOVHLPS     X2, X2, X0
	VADDSS       X0, X2, X2
	RET

// product writes the product of the strips at SI and the R10 numbers at DX to the CX numbers at DI.
TEXT product<>(SB), NOSPLIT, $0-0
strip:
	CMPQ    CX, $4
	JLE     four
	VMOVUPS (SI), Y0
	ADDQ    $32, SI
	COLUMNS(Y0, Y3, Y1, Y4, 32, eight8, few8, two8, one8, end8)
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
	COLUMNS(X0, X3, X1, X4, 16, eight4, few4, two4, one4, end4)
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
	RET

// func squaredLengthAVX2(strips, x []float32) float32
TEXT ·squaredLengthAVX2(SB), NOSPLIT, $0-52
	MOVQ   strips_base+0(FP), SI
	MOVQ   x_base+24(FP), DX
	MOVQ   x_len+32(FP), CX
	CALL   squared<>(SB)
	VMOVSS X2, ret+48(FP)
	VZEROUPPER
	RET

// func linearAVX2(y, strips, x []float32)
TEXT ·linearAVX2(SB), NOSPLIT, $0-72
	MOVQ y_base+0(FP), DI
	MOVQ y_len+8(FP), CX
	MOVQ strips_base+24(FP), SI
	MOVQ x_base+48(FP), DX
	MOVQ x_len+56(FP), R10
	CALL product<>(SB)
	VZEROUPPER
	RET

// func expectAVX2(j *judge, l *leaf) bool
TEXT ·expectAVX2(SB), NOSPLIT, $0-17
	MOVQ     j+0(FP), R12
	MOVQ     l+8(FP), R13
	MOVQ     leaf_inverse(R13), SI
	MOVQ     judge_x(R12), DX
	MOVQ     judge_x+8(R12), CX
	CALL     squared<>(SB)
	VMOVSS   leaf_radius(R13), X0
	VUCOMISS X2, X0
	JCS      outside                   // beyond the radius, or not a number
	MOVQ     judge_predicted(R12), DI
	MOVQ     judge_predicted+8(R12), CX
	MOVQ     leaf_beta(R13), SI
	MOVQ     judge_x+8(R12), R10
	CALL     product<>(SB)
	MOVB     $1, ret+16(FP)
	VZEROUPPER
	RET

outside:
	MOVB $0, ret+16(FP)
	VZEROUPPER
	RET

// ranked finds the ranks of the CX keys at DX in the laws at SI, and writes them and the ties to DI and R10.
TEXT ranked<>(SB), NOSPLIT, $0-0
	XORQ R9, R9
	JMP  more

key:
	VPBROADCASTD (DX)(R9*4), Y0
	VPCMPGTD     (SI), Y0, Y1
	VMOVMSKPS    Y1, AX
	ANDL         $0x7f, AX
	POPCNTL      AX, AX                // branches before
	LEAQ         (AX*8), BX
	MOVQ         BX, R8
	SUBQ         AX, R8
	VMOVDQU      28(SI)(R8*4), Y3      // the twigs, and the key behind them, which is only below if it is the last one
	VPCMPGTD     Y3, Y0, Y1
	VMOVMSKPS    Y1, AX
	POPCNTL      AX, AX
	ADDL         BX, AX
	MOVL         AX, (DI)(R9*4)
	XORL         AX, AX
	VPCMPEQD     (SI), Y0, Y1
	VPCMPEQD     Y3, Y0, Y3
	VPOR         Y1, Y3, Y1
	VPTEST       Y1, Y1
	JNE          equal

ties:
	MOVL AX, (R10)(R9*4)
	ADDQ $256, SI
	INCQ R9

more:
	CMPQ R9, CX
	JLT  key
	RET

equal:
	XORQ R8, R8

alike:
	VPCMPEQD  (SI)(R8*1), Y0, Y1
	VMOVMSKPS Y1, BX
	POPCNTL   BX, BX
	ADDL      BX, AX
	ADDQ      $32, R8
	CMPQ      R8, $256
	JLT       alike
	JMP       ties

// CONSTANT sets all lanes of a register to a number of 32 bits.
#define CONSTANT(bits, x, y) \
	MOVL         bits, AX \
	VMOVD        AX, x    \
	VPBROADCASTD x, y

// LOW writes the lower halves of the eight numbers of 64 bits in low and high to low.
#define LOW(low, high) \
	VSHUFPS $0x88, high, low, low \
	VPERMQ  $0xD8, low, low

// residuals computes the keys of the residuals of the lanes at R8, from CX to DX.
TEXT residuals<>(SB), NOSPLIT, $0-0
	MOVQ     lanes_y(R8), SI
	MOVQ     lanes_expected(R8), DI
	MOVQ     lanes_unit(R8), R9
	MOVQ     lanes_blur(R8), R10
	MOVQ     lanes_seeds(R8), R11
	MOVQ     lanes_keys(R8), R12
	MOVQ     lanes_scaled(R8), R13
	CONSTANT($0x3fff, X15, Y15)
	VPSRLQ   $32, Y15, Y15              // of 64 bits
	CONSTANT($0x38800000, X14, Y14)     // 1/16384
	CONSTANT($0x3fc00000, X13, Y13)     // 1.5
	CONSTANT($0x7fffffff, X12, Y12)
	VPXOR    Y11, Y11, Y11
	JMP      more

eight:
	VMOVDQU (R11)(CX*8), Y0
	VMOVDQU 32(R11)(CX*8), Y1
	VPAND   Y15, Y0, Y2
	VPAND   Y15, Y1, Y3
	VPSRLQ  $14, Y0, Y4
	VPSRLQ  $14, Y1, Y5
	VPAND   Y15, Y4, Y4
	VPAND   Y15, Y5, Y5
	VPADDD  Y4, Y2, Y2
	VPADDD  Y5, Y3, Y3
	VPSRLQ  $28, Y0, Y4
	VPSRLQ  $28, Y1, Y5
	VPAND   Y15, Y4, Y4
	VPAND   Y15, Y5, Y5
	VPADDD  Y4, Y2, Y2
	VPADDD  Y5, Y3, Y3
	LOW(Y2, Y3)
	VCVTDQ2PS Y2, Y2
	VMULPS  Y14, Y2, Y2
	VSUBPS  Y13, Y2, Y2
	VADDPS  Y2, Y2, Y2                  // noise
	VMULPS  (R10)(CX*4), Y2, Y2
	VMOVUPS (SI)(CX*4), Y3
	VDIVPS  (R9)(CX*4), Y3, Y3
	VMOVUPS Y3, (R13)(CX*4)
	VSUBPS  (DI)(CX*4), Y3, Y3
	VADDPS  Y2, Y3, Y3
	VADDPS  Y11, Y3, Y3                 // turns negative zero into zero
	VPSRAD  $31, Y3, Y4
	VPAND   Y12, Y4, Y4
	VPXOR   Y4, Y3, Y3
	VMOVDQU Y3, (R12)(CX*4)
	ADDQ    $8, CX

more:
	CMPQ CX, DX
	JLT  eight
	RET

// normals computes the scores of the lanes at R8, from CX to DX.
TEXT normals<>(SB), NOSPLIT, $0-0
	MOVQ     lanes_ranks(R8), SI
	MOVQ     lanes_ties(R8), DI
	MOVQ     lanes_of(R8), R9
	MOVQ     lanes_seeds(R8), R11
	MOVQ     lanes_z(R8), R12
	LEAQ     ·normalTable(SB), R10
	CONSTANT($0x3f000000, X15, Y15)     // .5
	CONSTANT($0x34800000, X14, Y14)     // 1/(1<<22)
	CONSTANT($0x45000000, X13, Y13)     // normalCells
	CONSTANT($2047, X12, Y12)           // the last interval
	VPXOR    Y11, Y11, Y11
	VPCMPEQD Y10, Y10, Y10              // -1
	JMP      more

eight:
	VMOVDQU    (R11)(CX*8), Y0
	VMOVDQU    32(R11)(CX*8), Y1
	VPSRLQ     $42, Y0, Y0
	VPSRLQ     $42, Y1, Y1
	LOW(Y0, Y1)
	VCVTDQ2PS  Y0, Y0
	VADDPS     Y15, Y0, Y0
	VMULPS     Y14, Y0, Y0              // uniform
	VMOVDQU    (DI)(CX*4), Y1
	VPSUBD     Y10, Y1, Y1
	VCVTDQ2PS  Y1, Y1
	VMULPS     Y1, Y0, Y0
	VCVTDQ2PS  (SI)(CX*4), Y1
	VADDPS     Y0, Y1, Y0
	VDIVPS     (R9)(CX*4), Y0, Y0
	VMULPS     Y13, Y0, Y0
	VCVTTPS2DQ Y0, Y1
	VPMINSD    Y12, Y1, Y1
	VPMAXSD    Y11, Y1, Y1              // 0 for NaN
	VCVTDQ2PS  Y1, Y2
	VSUBPS     Y2, Y0, Y0
	VEXTRACTI128 $1, Y1, X2
	VPCMPEQD   Y3, Y3, Y3
	VGATHERDPD Y3, (R10)(X1*4), Y4      // both ends of four intervals
	VPCMPEQD   Y3, Y3, Y3
	VGATHERDPD Y3, (R10)(X2*4), Y6
	VSHUFPS    $0xDD, Y6, Y4, Y5
	VPERMQ     $0xD8, Y5, Y5
	LOW(Y4, Y6)
	VSUBPS     Y4, Y5, Y5
	VMULPS     Y5, Y0, Y0
	VADDPS     Y4, Y0, Y0
	VMOVUPS    Y0, (R12)(CX*4)
	ADDQ       $8, CX

more:
	CMPQ CX, DX
	JLT  eight
	RET

// func scoreAVX2(judges []judge, l *lanes, from, to int)
TEXT ·scoreAVX2(SB), NOSPLIT, $0-48
	MOVQ l+24(FP), R8
	MOVQ from+32(FP), CX
	MOVQ to+40(FP), DX
	CALL residuals<>(SB)
	MOVQ judges_base+0(FP), R15
	MOVQ judges_len+8(FP), R14
	JMP  more

one:
	MOVQ  judge_leaf(R15), AX
	TESTQ AX, AX
	JEQ   next
	MOVQ  leaf_law(AX), SI
	MOVQ  (judge_lanes+lanes_ranks)(R15), DI
	MOVQ  (judge_lanes+lanes_ties)(R15), R10
	MOVQ  (judge_lanes+lanes_keys)(R15), DX
	MOVQ  (judge_lanes+lanes_keys+8)(R15), CX
	CALL  ranked<>(SB)

next:
	ADDQ $judge__size, R15
	DECQ R14

more:
	CMPQ R14, $0
	JGT  one
	MOVQ l+24(FP), R8
	MOVQ from+32(FP), CX
	MOVQ to+40(FP), DX
	CALL normals<>(SB)
	VZEROUPPER
	RET

// func standardizeAVX2(x, centre, inverse []float32, changes, each int)
TEXT ·standardizeAVX2(SB), NOSPLIT, $0-88
	MOVQ x_base+0(FP), DI
	MOVQ x_len+8(FP), CX
	MOVQ centre_base+24(FP), SI
	MOVQ inverse_base+48(FP), DX
	MOVQ changes+72(FP), R8
	MOVQ each+80(FP), R9
	LEAQ (DI)(R8*4), R8
	XORQ AX, AX
	JMP  moreChanges

change:
	VMOVUPS (R8)(AX*4), Y0
	VSUBPS  (DI)(AX*4), Y0, Y0
	VMOVUPS Y0, (R8)(AX*4)
	ADDQ    $8, AX

moreChanges:
	CMPQ AX, R9
	JLT  change
	XORQ AX, AX
	JMP  more

eight:
	VMOVUPS (DI)(AX*4), Y0
	VSUBPS  (SI)(AX*4), Y0, Y0
	VMULPS  (DX)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX

more:
	CMPQ AX, CX
	JLT  eight
	VZEROUPPER
	RET

// func addAVX2(s *sums, l *lanes, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-24
	CONSTANT($0x3f000000, X15, Y15) // .5
	MOVQ s+0(FP), DI
	MOVQ l+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ lanes_z(SI), R8
	MOVQ lanes_expected(SI), R9
	MOVQ lanes_unit(SI), R10
	MOVQ lanes_y(SI), R11
	MOVQ sums_before(DI), R12
	MOVQ sums_mean(DI), R13
	MOVQ sums_square(DI), R14
	MOVQ sums_expected(DI), R15
	MOVQ sums_actual(DI), AX
	MOVQ sums_both(DI), BX
	MOVQ sums_cross(DI), SI
	MOVQ sums_squares(DI), DI
	XORQ CX, CX
	JMP  more

eight:
	VMOVUPS (R8)(CX*4), Y0          // score
	VMOVUPS (R12)(CX*4), Y1         // of the step before
	VMOVUPS Y0, (R12)(CX*4)
	VCMPPS  $7, Y0, Y0, Y2          // whether it is a number
	VCMPPS  $7, Y0, Y1, Y3          // whether both are
	VMULPS  Y0, Y0, Y4
	VANDPS  Y2, Y0, Y5
	VADDPS  (R13)(CX*4), Y5, Y5
	VMOVUPS Y5, (R13)(CX*4)
	VANDPS  Y2, Y4, Y5
	VADDPS  (R14)(CX*4), Y5, Y5
	VMOVUPS Y5, (R14)(CX*4)
	VMOVUPS (R9)(CX*4), Y5
	VMULPS  (R10)(CX*4), Y5, Y5
	VANDPS  Y2, Y5, Y5
	VADDPS  (R15)(CX*4), Y5, Y5
	VMOVUPS Y5, (R15)(CX*4)
	VANDPS  (R11)(CX*4), Y2, Y5
	VADDPS  (AX)(CX*4), Y5, Y5
	VMOVUPS Y5, (AX)(CX*4)
	VADDPS  Y1, Y0, Y5
	VMULPS  Y15, Y5, Y5
	VANDPS  Y3, Y5, Y5
	VADDPS  (BX)(CX*4), Y5, Y5
	VMOVUPS Y5, (BX)(CX*4)
	VMULPS  Y1, Y1, Y5
	VADDPS  Y5, Y4, Y5
	VMULPS  Y15, Y5, Y5
	VANDPS  Y3, Y5, Y5
	VADDPS  (DI)(CX*4), Y5, Y5
	VMOVUPS Y5, (DI)(CX*4)
	VMULPS  Y1, Y0, Y5
	VANDPS  Y3, Y5, Y5
	VADDPS  (SI)(CX*4), Y5, Y5
	VMOVUPS Y5, (SI)(CX*4)
	ADDQ    $8, CX

more:
	CMPQ CX, DX
	JLT  eight
	VZEROUPPER
	RET
