#include "textflag.h"

// Both functions add as dot does: in the four lanes of X0, the rest of a row in the first of them. So they return the
// same as the plain ones, to the last bit. Neither checks lengths.

// SUM adds up the lanes of X0: the first and the second, the third and the fourth, then both sums.
#define SUM \
	MOVAPS  X0, X1        \
	SHUFPS  $0xB1, X1, X1 \
	ADDPS   X1, X0        \
	MOVHLPS X0, X1        \
	ADDSS   X1, X0

// func squaredLength(triangle, x []float32, bound float32) float32
TEXT ·squaredLength(SB), NOSPLIT, $0-60
	MOVQ  triangle_base+0(FP), SI
	MOVQ  x_base+24(FP), DI
	MOVQ  x_len+32(FP), CX
	MOVSS bound+48(FP), X7
	XORPS X6, X6
	XORQ  DX, DX           // the row; it has one number more

row:
	CMPQ  DX, CX
	JGE   done
	INCQ  DX
	XORPS X0, X0
	MOVQ  DI, R8
	MOVQ  DX, R9
	SUBQ  $4, R9
	JLT   rest

four:
	MOVUPS (SI), X1
	MOVUPS (R8), X2
	MULPS  X2, X1
	ADDPS  X1, X0
	ADDQ   $16, SI
	ADDQ   $16, R8
	SUBQ   $4, R9
	JGE    four

rest:
	ADDQ $4, R9
	JEQ  sum

one:
	MOVSS (SI), X1
	MULSS (R8), X1
	ADDSS X1, X0
	ADDQ  $4, SI
	ADDQ  $4, R8
	DECQ  R9
	JNE   one

sum:
	SUM
	MULSS   X0, X0
	ADDSS   X0, X6
	UCOMISS X7, X6
	JLS     row    // not above the bound

done:
	MOVSS X6, ret+56(FP)
	RET

// func linear(y, beta, x []float32)
TEXT ·linear(SB), NOSPLIT, $0-72
	MOVQ y_base+0(FP), BX
	MOVQ y_len+8(FP), CX
	MOVQ beta_base+24(FP), SI
	MOVQ x_base+48(FP), DI
	MOVQ x_len+56(FP), DX

target:
	DECQ  CX
	JLT   end
	MOVSS (SI), X3
	ADDQ  $4, SI
	XORPS X0, X0
	MOVQ  DI, R8
	MOVQ  DX, R9
	SUBQ  $4, R9
	JLT   rest

four:
	MOVUPS (SI), X1
	MOVUPS (R8), X2
	MULPS  X2, X1
	ADDPS  X1, X0
	ADDQ   $16, SI
	ADDQ   $16, R8
	SUBQ   $4, R9
	JGE    four

rest:
	ADDQ $4, R9
	JEQ  sum

one:
	MOVSS (SI), X1
	MULSS (R8), X1
	ADDSS X1, X0
	ADDQ  $4, SI
	ADDQ  $4, R8
	DECQ  R9
	JNE   one

sum:
	SUM
	ADDSS X3, X0
	MOVSS X0, (BX)
	ADDQ  $4, BX
	JMP   target

end:
	RET
