#include "go_asm.h"
#include "textflag.h"

// func passedAVX2(moves []Scores, units []int32, s *Scores) (bits int64)
TEXT ·passedAVX2(SB), NOSPLIT, $0-64
	MOVQ    moves_base+0(FP), SI
	MOVQ    units_base+24(FP), DX
	MOVQ    units_len+32(FP), CX
	MOVQ    s+48(FP), DI
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	VPXOR   Y2, Y2, Y2
	VPXOR   Y3, Y3, Y3
	VPXOR   Y4, Y4, Y4
	JMP     more

unit:
	MOVLQSX   (DX), AX
	ADDQ      $4, DX
	SHLQ      $6, AX
	VPADDQ    (SI)(AX*1), Y0, Y0
	VPADDQ    32(SI)(AX*1), Y1, Y1
	VBLENDVPD Y0, Y4, Y0, Y0         // 0 instead of negative scores
	VBLENDVPD Y1, Y4, Y1, Y1
	VPOR      Y0, Y2, Y2
	VPOR      Y1, Y3, Y3
	DECQ      CX

more:
	CMPQ         CX, $0
	JGT          unit
	VMOVDQU      Y0, (DI)
	VMOVDQU      Y1, 32(DI)
	VPOR         Y2, Y3, Y2
	VEXTRACTI128 $1, Y2, X3
	VPOR         X2, X3, X2
	VPSHUFD      $0x4E, X2, X3
	VPOR         X2, X3, X2
	VMOVQ        X2, AX
	MOVQ         AX, bits+56(FP)
	VZEROUPPER
	RET

// func sumsAVX2(table []Term, at []int32, times, weight []float64, sums *Sums)
TEXT ·sumsAVX2(SB), NOSPLIT, $0-104
	MOVQ   table_base+0(FP), SI
	MOVQ   at_base+24(FP), DX
	MOVQ   at_len+32(FP), CX
	MOVQ   times_base+48(FP), R8
	MOVQ   weight_base+72(FP), R9
	MOVQ   sums+96(FP), DI
	VXORPD Y8, Y8, Y8                // fresh 0 to 3
	VXORPD Y9, Y9, Y9                // fresh 4 to 7
	VXORPD X10, X10, X10             // fresh 8
	VXORPD X11, X11, X11             // first
	VXORPD X12, X12, X12             // second
	XORQ   BX, BX
	JMP    more

value:
	MOVLQSX      (DX)(BX*4), AX
	IMUL3Q       $Term__size, AX, AX
	ADDQ         SI, AX
	VBROADCASTSD (R9)(BX*8), Y0
	VMULPD       Term_Fresh(AX), Y0, Y1
	VADDPD       Y1, Y8, Y8
	VMULPD       (Term_Fresh+32)(AX), Y0, Y2
	VADDPD       Y2, Y9, Y9
	VMULSD       (Term_Fresh+64)(AX), X0, X3
	VADDSD       X3, X10, X10
	VMOVSD       Term_Own(AX), X4
	VMULSD       (R8)(BX*8), X4, X5
	VADDSD       X5, X11, X11
	VMULSD       X4, X5, X6
	VADDSD       X6, X12, X12
	INCQ         BX

more:
	CMPQ    BX, CX
	JLT     value
	VMOVSD  X11, Sums_First(DI)
	VMOVSD  X12, Sums_Second(DI)
	VMOVUPD Y8, Sums_Fresh(DI)
	VMOVUPD Y9, (Sums_Fresh+32)(DI)
	VMOVSD  X10, (Sums_Fresh+64)(DI)
	VZEROUPPER
	RET

// func foundAVX2(c *Course, logs []float64) (found int)
TEXT ·foundAVX2(SB), NOSPLIT, $0-40
	MOVQ         c+0(FP), DI
	MOVQ         logs_base+8(FP), SI
	MOVQ         logs_len+16(FP), CX
	LEAQ         (SI)(CX*8), CX                           // the end
	VBROADCASTSD Course_Each(DI), Y0
	VBROADCASTSD Course_Within(DI), Y1                    // values left
	VBROADCASTSD (Course_One+Fall_Walk)(DI), Y2
	VBROADCASTSD (Course_One+Fall_Usual)(DI), Y3
	VBROADCASTSD (Course_One+Fall_Rare)(DI), Y4
	VBROADCASTSD (Course_One+Fall_Height)(DI), Y5
	VBROADCASTSD (Course_Other+Fall_Walk)(DI), Y6
	VBROADCASTSD (Course_Other+Fall_Usual)(DI), Y7
	VBROADCASTSD (Course_Other+Fall_Rare)(DI), Y8
	VBROADCASTSD (Course_Other+Fall_Height)(DI), Y9
	VXORPD       Y10, Y10, Y10                            // zero
	VXORPD       Y11, Y11, Y11                            // which have found it
	MOVQ         $0x3ff0000000000000, AX
	VMOVQ        AX, X15
	VBROADCASTSD X15, Y15                                 // 1
	VCMPPD       $0x1e, Y10, Y1, Y12                      // which go on: values are left
	VMOVMSKPD    Y12, AX
	TESTL        AX, AX
	JEQ          count

jump:
	CMPQ      SI, CX
	JGE       few
	VMOVUPD   (SI), Y13
	ADDQ      $32, SI
	VDIVPD    Y0, Y13, Y13
	VROUNDPD  $3, Y13, Y13                                // toward zero
	VMINPD    Y1, Y13, Y13                                // usual values
	VSUBPD    Y15, Y1, Y1
	VSUBPD    Y13, Y1, Y1
	VMULPD    Y3, Y13, Y14
	VADDPD    Y14, Y2, Y2
	VMULPD    Y7, Y13, Y14
	VADDPD    Y14, Y6, Y6
	VCMPPD    $0x1d, Y5, Y2, Y13                          // at the height or above
	VCMPPD    $0x1d, Y9, Y6, Y14
	VORPD     Y13, Y14, Y13
	VANDPD    Y12, Y13, Y13
	VORPD     Y13, Y11, Y11
	VADDPD    Y4, Y2, Y2
	VADDPD    Y8, Y6, Y6
	VMAXPD    Y10, Y2, Y2
	VMAXPD    Y10, Y6, Y6
	VCMPPD    $0x1e, Y10, Y1, Y12
	VANDNPD   Y12, Y11, Y12                               // and has not been found
	VMOVMSKPD Y12, AX
	TESTL     AX, AX
	JNE       jump

count:
	VMOVMSKPD Y11, AX
	POPCNTL   AX, AX
	MOVQ      AX, found+32(FP)
	VZEROUPPER
	RET

few:
	MOVQ $-1, found+32(FP)
	VZEROUPPER
	RET
