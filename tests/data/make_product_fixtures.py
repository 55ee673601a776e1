"""Writes contraction_values.txt: what NumPy gives for einsum and products of batches. Run with
NumPy 2.4. The format is that of make_shape_fixtures.py."""

import os

import numpy as np

import make_shape_fixtures as fixtures

here = os.path.dirname(os.path.abspath(__file__))


def einsum(subscripts, *shapes, dtypes=("float64",)):
    fixtures.case("einsum " + subscripts, lambda *x: np.einsum(subscripts, *x), *shapes,
                  dtypes=dtypes)


def main():
    both = ("float64", "int32")
    einsum("ij,jk->ik", (2, 3), (3, 4), dtypes=("float64", "float32", "int32", "uint8"))
    einsum("ij,jk", (2, 3), (3, 4))
    einsum("ij,jk->ki", (2, 3), (3, 4))
    einsum("ba,cb", (2, 3), (4, 2))
    einsum("ii", (3, 3), dtypes=both)
    einsum("ii->i", (3, 3), dtypes=both)
    einsum("iij->ji", (2, 2, 3))
    einsum("iii->i", (3, 3, 3))
    einsum("ij->", (2, 3))
    einsum("ij->j", (2, 3), dtypes=both)
    einsum("ji", (2, 3))
    einsum("i,i->", (3,), (3,), dtypes=both)
    einsum("i,i->i", (3,), (3,))
    einsum("i,j->ij", (2,), (3,))
    einsum(",ij->ij", (), (2, 3))
    einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 2), dtypes=both)
    einsum("ij,j->i", (2, 3), (3,))
    einsum("ijk,jk->i", (2, 3, 4), (3, 4))
    einsum("ijk,kjl->il", (2, 3, 4), (4, 3, 5))
    einsum("abc,cd->abd", (2, 3, 4), (4, 2))
    einsum("aib,bja->ij", (2, 3, 4), (4, 3, 2))
    einsum("i...,i...->...", (3, 2), (3, 2))
    einsum("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2))
    einsum("...i,i->...", (2, 3, 4), (4,))
    einsum("...ij", (2, 3, 4))
    einsum("i...->...", (2, 3, 4))
    einsum("...,...->...", (2, 3), ())
    einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2))
    einsum("ij,jk,kl,lm->mi", (2, 3), (3, 4), (4, 2), (2, 3))
    einsum("a,b,ab->", (2,), (3,), (2, 3))
    einsum("ij,ij,ij->j", (2, 3), (2, 3), (2, 3))
    einsum("ij,jk->ik", (2, 0), (0, 3))
    einsum("ij,jk->ik", (0, 2), (2, 3))
    einsum("ij,ik->jk", (1, 3), (4, 2))
    einsum(" i j , j k -> i k ", (2, 3), (3, 2))
    fixtures.case("vecdot", np.vecdot, (2, 3), (3,), dtypes=both)
    fixtures.case("vecdot", np.vecdot, (3,), (3,))
    fixtures.case("matvec", np.matvec, (2, 3, 4), (4,))
    fixtures.case("matvec", np.matvec, (3, 4), (2, 4))
    fixtures.case("vecmat", np.vecmat, (2, 3), (2, 3, 4), dtypes=both)
    fixtures.case("matmul", np.matmul, (3,), (2, 3, 4), dtypes=both)
    fixtures.case("matmul", np.matmul, (2, 3, 4), (4,), dtypes=both)
    fixtures.case("matmul", np.matmul, (2, 1, 3, 4), (5, 4, 2), dtypes=both)
    fixtures.case("matmul", np.matmul, (3,), (3,), dtypes=("int64", "uint8"))
    fixtures.case("batched_dot", lambda a, b: np.einsum("bij,bjk->bik", a, b), (2, 3, 4), (2, 4, 5))
    fixtures.case("batched_dot", lambda a, b: np.einsum("bj,bjk->bk", a, b), (2, 4), (2, 4, 5))
    fixtures.case("batched_dot", lambda a, b: np.einsum("bj,bj->b", a, b), (2, 4), (2, 4))
    fixtures.case("batched_tensordot 1,2 2,1",
                  lambda a, b: np.einsum("bijk,bjim->bkm", a, b), (2, 3, 4, 5), (2, 4, 3, 2))
    with open(os.path.join(here, "contraction_values.txt"), "w") as out:
        out.write("\n".join(fixtures.blocks) + "\n")


if __name__ == "__main__":
    main()
