"""Calls of MindSpore's primitives on the CPU, for primitives_test.lua: writes cases.json beside this file.

A case is [name, attributes, inputs, results]; a tensor is {"t": nested lists, "d": dtype}, a dtype {"dtype": name}, the results are
null where MindSpore has no kernel or refuses. Run it where mindspore is installed: python3 make_reference.py
"""
import json
import os
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
cases = []


class Type:
    def __init__(self, name):
        self.name = name


f32, i32, i64, b, c64, u8 = (Type(n) for n in ("float32", "int32", "int64", "bool_", "complex64", "uint8"))


class T:
    def __init__(self, data, dtype=None, parameter=False):
        self.data, self.parameter = data, parameter
        flat = np.array(data).reshape(-1)
        if dtype is None:
            dtype = b if flat.dtype == bool else i64 if flat.dtype.kind == "i" else f32
        self.dtype = dtype


def C(name, attrs=(), inputs=(), note=None):
    cases.append((name, list(attrs) if not isinstance(attrs, dict) else attrs, list(inputs)))


def V(data, dtype=None):
    return T(data, dtype, True)


def ramp(*shape, start=-1.0, step=0.37, dtype=None):
    n = int(np.prod(shape)) if shape else 1
    return T(np.round(np.arange(n) * step + start, 4).reshape(shape).tolist(), dtype or f32)


A = [[-1.5, 0.25, 2.0], [0.5, -0.75, 1.25]]
POS = [[0.5, 1.5, 2.0], [0.25, 3.0, 1.0]]
UNIT = [[-0.5, 0.25, 0.9], [0.1, -0.75, 0.6]]
B = [[2.0, -0.5, 1.0], [1.5, 0.75, -2.0]]
I1, I2 = [[6, 3, -4], [12, 5, 7]], [[4, 2, 3], [8, 3, 2]]

for n in """Abs Atan Asinh Ceil Cos Cosh Erf Erfc Exp Expm1 Floor FastGeLU GeLU HSigmoid HSwish Identity Mish Neg ReLU ReLU6 Rint SeLU
    Sigmoid Sign Sin Sinc Sinh Softplus Softsign Square Tan Tanh Trunc OnesLike ZerosLike IsNan IsInf IsFinite BesselI0 BesselI0e BesselI1
    BesselI1e BesselJ0 BesselJ1 L2Loss FastGelu Gelu NonZero Rank Shape Size DType StopGradient CheckNumerics FloatStatus Flatten TensorShape
    IdentityN""".split():
    C(n, [], [[T(A), T(B)] if n == "IdentityN" else T(A)])
for n in "Log Log1p Sqrt Rsqrt Reciprocal Inv Lgamma Digamma BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1".split():
    C(n, [], [T(POS)])
for n in "ACos Asin Atanh Erfinv".split():
    C(n, [], [T(UNIT)])
C("Acosh", [], [T([[1.5, 2.0, 3.0]])])
for n in """Add Sub Mul Div RealDiv Atan2 Maximum Minimum SquaredDifference DivNoNan MulNoNan Equal NotEqual Less LessEqual Greater GreaterEqual
    FloorDiv FloorMod Mod TruncateDiv TruncateMod Hypot Xdivy Fmax Fmin NextAfter TensorAdd Heaviside SquareSumAll""".split():
    C(n, [], [T(A), T(B)])
C("Pow", [], [T(POS), T(B)])
C("Xlogy", [], [T(A), T(POS)])
C("ApproximateEqual", [0.6], [T(A), T(B)])
C("IsClose", [0.1, 0.1], [T(A), T([[-1.52, 0.5, 2.1], [0.5, -0.7, 1.0]])])
for n in "BitwiseAnd BitwiseOr BitwiseXor Gcd Lcm EqualCount".split():
    C(n, [], [T(I1, i32), T(I2, i32)])
C("LeftShift", [], [T([[1, 2]], i32), T([[3, 1]], i32)])
C("RightShift", [], [T([[8, 9]], i32), T([[2, 1]], i32)])
C("Invert", [], [T([[1, 0, -5]], i32)])
C("PopulationCount", [], [T([0, 3, 255, 16], i32)])
for n in "LogicalAnd LogicalOr LogicalXor".split():
    C(n, [], [T([True, False, True]), T([True, True, False])])
C("LogicalNot", [], [T([True, False])])
C("DivNoNan", [], [T([1.0, 0.0]), T([0.0, 2.0])])
C("MulNoNan", [], [T([float("inf"), 3.0]), T([0.0, 2.0])])
C("Zeta", [], [T([3.0, 2.5]), T([1.0, 2.0])])
C("Polygamma", [], [T(1, i64), T([1.0, 2.5])])
C("Igamma", [], [T([1.0, 2.0]), T([0.5, 3.0])])
C("Igammac", [], [T([1.0, 2.0]), T([0.5, 3.0])])
C("Betainc", [], [T([1.0, 2.0]), T([0.5, 3.0]), T([0.3, 0.6])])
C("Mvlgamma", [2], [T([[3.0, 4.5]])])
C("Logit", [1e-3], [T([0.2, 0.9])])
C("NanToNum", [0.5, 1.0, -1.0], [T([float("nan"), float("inf"), float("-inf"), 2.0])])
C("Round", [], [T(A), 1])
C("Lerp", [], [T(A), T(B), T(0.3)])
C("LerpScalar", [], [T(A), T(B), 0.3])
C("Addcdiv", [], [T(A), T(B), T(POS), T([0.5])])
C("Addcmul", [], [T(A), T(B), T(POS), T([0.5])])
C("Cross", [1], [T(A), T(B)])
C("AddN", [], [[T(A), T(B), T(A)]])
C("AccumulateNV2", [], [[T(A), T(B)]])
# Activations with attributes.
C("Softmax", [], [T(A)])
C("LogSoftmax", [-1], [T(A)])
C("LogSoftmaxExt", [], [T(A), 1])
C("Elu", [1.0], [T(A)])
C("CeLU", [0.7], [T(A)])
C("HShrink", [0.6], [T(A)])
C("SoftShrink", [0.4], [T(A)])
C("GLU", [-1], [ramp(2, 4)])
C("PReLU", [], [ramp(1, 2, 2), T([0.2, 0.3])])
C("L2Normalize", [1], [T(A)])
C("LRN", [2, 1.0, 0.5, 0.5], [ramp(1, 4, 2, 2)])
# Reductions, scans, order.
for n in "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd".split():
    C(n, [True], [T(A), 1])
    C(n, [], [T(A), ()])
for n in "ReduceAll ReduceAny".split():
    C(n, [False], [T([[True, False], [True, True]]), 1])
C("ReduceStd", [[1], True, True], [T(A)])
C("EuclideanNorm", [True], [T(A), T([1], i64)])
C("LpNorm", [[1], 2, True], [T(A)])
C("NuclearNorm", [], [T(A)])
C("CumSum", [True, True], [T(A), 1])
C("CumSum", [], [T(A), 0])
C("CumProd", [True, False], [T(A), 1])
C("CumProd", [False, True], [T(A), 1])
C("Cummax", [0], [T(A)])
C("Cummin", [1], [T(A)])
C("CumulativeLogsumexp", [False, True], [T(A), T(1, i64)])
C("ArgMaxWithValue", [1, True], [T(A)])
C("ArgMinWithValue", [0], [T(A)])
C("Argmax", [1], [T(A)])
C("Argmin", [-1, i64], [T(A)])
C("Sort", [1, True], [T(A)])
C("TopK", [True], [T(A), 2])
C("NthElement", [True], [T(A), 1])
C("Median", [False, 1, False], [T(A)])
C("Median", [True], [T(A)])
C("Quantile", [1, True], [T(A), T([0.25, 0.5])])
C("Histogram", [4, -1.0, 2.0], [T(A)])
C("HistogramFixedWidth", [5], [T([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]), T([0.0, 5.0])])
C("Bincount", [], [T([1, 1, 0, 3], i32), T(5, i32), T([1.0, 2.0, 3.0, 4.0])])
C("Bucketize", {"boundaries": [0.0, 1.0, 1.5]}, [T(A)])
C("CountNonZero", [[1]], [T([[0.0, 1.0], [2.0, 3.0]])])
C("SearchSorted", [i64, True], [T([[1.0, 2.0, 3.0]]), T([[2.0, 0.5]])])
C("LowerBound", [], [T([[1.0, 2.0, 2.0, 4.0]]), T([[2.0, 3.0]])])
C("UpperBound", [i64], [T([[1.0, 2.0, 2.0, 4.0]]), T([[2.0, 3.0]])])
C("Unique", [], [T([3, 1, 3, 2], i32)])
C("UniqueConsecutive", [True, True], [T([1, 1, 2, 3, 3, 1], i32)])
C("UniqueWithPad", [], [T([3, 1, 3, 2], i32), 9])
C("ListDiff", [], [T([1, 2, 3, 4], i32), T([2, 4], i32)])
# Shapes and places.
C("BroadcastTo", [[2, 2, 3]], [T(A)])
C("Cast", [], [T(A), i32])
C("Concat", [1], [[T(A), T(B)]])
C("ParallelConcat", [], [[T([[1.0, 2.0]]), T([[3.0, 4.0]])]])
C("Stack", [1], [[T(A), T(B)]])
C("Pack", [0], [[T(A), T(B)]])
C("Unstack", [1, 3], [T(A)])
C("Unpack", [0], [T(A)])
C("Split", [1, 3], [T(A)])
C("SplitV", [[1, -1], 1, 2], [T(A)])
C("ExpandDims", [], [T(A), 1])
C("Squeeze", [], [T([[[1.0, 2.0]]])])
C("Squeeze", [0], [T([[[1.0, 2.0]]])])
C("Expand", [], [T([[1.0], [2.0]]), T([2, 3], i64)])
C("Reshape", [], [T(A), (3, 2)])
C("Transpose", [], [T(A), (1, 0)])
C("TransposeView", [], [T(A), (1, 0)])
C("TransposeExtView", [], [T(A), 0, 1])
C("SelectView", [], [T(A), 1, 0])
C("Tile", [], [T(A), (2, 1)])
C("ReverseV2", [[1]], [T(A)])
C("ReverseSequence", [1, 0], [T(A), T([2, 3], i64)])
C("Roll", [1, 1], [T(A)])
C("Diag", [], [T([1.0, 2.0])])
C("Diag", [], [T([[1.0, 2.0], [3.0, 4.0]])])
C("DiagPart", [], [T([[1.0, 2.0], [3.0, 4.0]])])
C("Tril", [-1], [ramp(3, 3)])
C("Triu", [1], [ramp(3, 3)])
C("TrilIndices", [3, 3, 0], [])
C("TriuIndices", [3, 3, 1, i64], [])
C("Trace", [], [ramp(3, 3)])
C("Meshgrid", ["ij"], [[T([1.0, 2.0]), T([3.0, 4.0, 5.0])]])
C("Eye", [], [2, 3, f32])
C("Fill", [], [f32, (2, 2), 3.0])
C("FillV2", [], [T([2, 2], i32), T(3.0)])
C("Fills", [], [T(A), 2.5])
C("FillDiagonal", [9.0], [ramp(3, 3)])
C("Ones", [], [(2, 2), f32])
C("Zeros", [], [(2, 2), f32])
C("LinSpace", [], [T(1.0), T(3.0), 5])
C("LogSpace", [4, 10, f32], [T(0.0), T(3.0)])
C("Range", [], [0, 6, 2])
C("OneHot", [-1], [T([0, 2], i32), 3, T(1.0), T(0.0)])
C("Gather", [], [T(A), T([2, 0], i32), 1])
C("Gather", [1], [T([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), T([[0, 2], [1, 1]], i32), 1])
C("GatherV2", [], [T(A), T([1], i32), 0])
C("SparseGatherV2", [], [T(A), T([1, 0], i32), 0])
C("GatherD", [], [T(A), 1, T([[0, 2], [1, 1]], i64)])
C("GatherNd", [], [T(A), T([[0, 1], [1, 2]], i64)])
C("Slice", [], [T(A), (0, 1), (2, 2)])
C("StridedSlice", [], [T(A), (0, 0), (2, 3), (1, 2)])
C("StridedSlice", [0, 0, 0, 0, 1], [T(A), (0, 0), (1, 3), (1, 1)])
C("Select", [], [T([[True, False, True], [False, False, True]]), T(A), T(B)])
C("MaskedFill", [], [T(A), T([[True, False, True], [False, False, True]]), T(7.0)])
C("MaskedSelect", [], [T(A), T([[True, False, True], [False, False, True]])])
C("MaskedScatter", [], [T(A), T([[True, False, True], [False, False, True]]), T([1.0, 2.0, 3.0, 4.0])])
C("IndexFill", [], [T(A), T(1, i32), T([0, 2], i32), T(5.0)])
C("IndexPut", [0], [T(A), T([9.0, 8.0]), [T([0, 1], i32), T([2, 0], i32)]])
C("InvertPermutation", [], [(2, 0, 1)])
C("ScatterNd", [], [T([[1], [0]], i32), T([[1.0, 2.0], [3.0, 4.0]]), (3, 2)])
for n in "TensorScatterAdd TensorScatterSub TensorScatterMul TensorScatterDiv TensorScatterMax TensorScatterMin TensorScatterUpdate".split():
    C(n, [], [T(A), T([[0, 1], [1, 2]], i32), T([0.5, 4.0])])
C("TensorScatterElements", [1, "add"], [T(A), T([[0, 2], [1, 1]], i32), T([[1.0, 2.0], [3.0, 4.0]])])
for n in "ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMax ScatterMin ScatterUpdate".split():
    C(n, [], [V(A), T([1, 0], i32), T(B)])
for n in "ScatterNdAdd ScatterNdSub ScatterNdMul ScatterNdDiv ScatterNdMax ScatterNdMin ScatterNdUpdate ScatterNonAliasingAdd".split():
    C(n, [], [V(A), T([[0, 1], [1, 2]], i32), T([0.5, 4.0])])
C("ScatterAddWithAxis", [1], [T(A), T([[0, 2, 1], [1, 1, 0]], i64), T(B)])
C("InplaceAdd", [[1, 0]], [T(A), T(B)])
C("InplaceSub", [[1, 0]], [T(A), T(B)])
C("InplaceUpdate", [[1]], [T(A), T([B[0]])])
C("InplaceUpdateV2", [], [T(A), (1,), T([B[0]])])
C("InplaceIndexAdd", [0], [V(A), T([1, 0], i32), T(B)])
C("IndexAdd", [1], [V(A), T([2, 0], i32), T([[1.0, 2.0], [3.0, 4.0]])])
for n in "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd".split():
    C(n, [], [T([1.0, 2.0, 3.0, 4.0]), T([0, 1, 0, 1], i32), 2])
for n in "SegmentSum SegmentMax SegmentMin SegmentProd SegmentMean".split():
    C(n, [], [T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), T([0, 0, 2], i64)])
C("EmbeddingLookup", [], [T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), T([[5, 2], [3, 4]], i32), 3])
C("UnravelIndex", [], [T([2, 5], i32), T([2, 3], i32)])
C("TupleToArray", [], [(1, 2, 3)])
C("ScalarToTensor", [], [3, f32])
C("ScalarToArray", [], [3])
C("ScalarCast", [], [3, f32])
C("TensorToTuple", [], [T([1, 2])])
C("DynamicShape", [], [T(A)])
C("CopyWithSlice", [], [V(A), T(B)])
C("EditDistance", [True], [T([[0, 0, 0], [1, 0, 1], [1, 1, 1]], i64), T([1.0, 2.0, 3.0]), T([1, 1, 2], i64),
                           T([[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]], i64), T([1.0, 2.0, 1.0, 2.0]), T([2, 2, 2], i64)])
C("Coalesce", [], [T([[0, 0, 1], [1, 1, 2]], i64), T([1.0, 5.0, 4.0]), T([3, 3], i64)])
C("MapUniform", [], [T([0, 1, 2, 3, 4, 5, 6, 7]), 4, 2])
C("SubAndFilter", [], [T([1, 3, 5, 8, 3, 16]), 10, 5])
C("Eps", [], [T([4.0, 1.0])])
C("Complex", [], [T([1.0, 2.0]), T([3.0, -4.0])])
for n in "Real Imag Conj ComplexAbs Angle".split():
    C(n, [], [T([[3.0, 4.0], [1.0, -2.0]], c64)])
C("ConjugateTranspose", [], [T([[[3.0, 4.0], [1.0, -2.0]]], c64), T([1, 0], i32)])
C("CompareAndBitpack", [], [T([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), T(4.0)])
C("RaggedRange", [i64], [T([2, 5, 8], i64), T([3, 5, 12], i64), T([1, 1, 1], i64)])
# Blocks and patches.
C("BatchToSpace", [2, [[0, 0], [0, 0]]], [ramp(4, 1, 1, 1)])
C("SpaceToBatch", [2, [[0, 0], [0, 0]]], [ramp(1, 1, 2, 2)])
C("BatchToSpaceND", [[2, 2], [[0, 0], [0, 0]]], [ramp(4, 1, 1, 1)])
C("BatchToSpaceNDV2", [], [ramp(4, 1, 1, 1), T([2, 2], i64), T([[0, 0], [0, 0]], i64)])
C("SpaceToBatchND", [[2, 2], [[0, 0], [0, 0]]], [ramp(1, 1, 2, 2)])
C("DepthToSpace", [2], [ramp(1, 8, 2, 2)])
C("SpaceToDepth", [2], [ramp(1, 2, 4, 4)])
C("ExtractImagePatches", [[1, 1, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"], [ramp(1, 2, 3, 3)])
C("ExtractVolumePatches", [[1, 1, 2, 2, 2], [1, 1, 1, 1, 1], "VALID"], [ramp(1, 1, 3, 3, 3)])
C("Im2Col", [[2, 2]], [ramp(1, 2, 3, 3)])
C("Col2Im", [[2, 2]], [ramp(1, 2, 4, 4), T([3, 3], i32)])
C("Pad", [((1, 0), (0, 2))], [T(A)])
C("PadV3", ["constant"], [T(A), T([1, 2], i64), T(5.0)])
C("PadV3", ["reflect"], [ramp(1, 1, 3), T([1, 1], i64)])
C("MirrorPad", ["SYMMETRIC"], [T(A), T([[1, 0], [0, 1]], i64)])
C("Padding", [4], [T([[1.0], [2.0]])])
C("ChannelShuffle", [2], [ramp(1, 4, 1, 2)])
# Matrices.
M = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]]
C("MatMul", [False, True], [T(A), T(B)])
C("MatMul", [True], [T(A), T(B)])
C("BatchMatMul", [False, True], [ramp(2, 2, 3), ramp(2, 2, 3)])
C("Dense", [], [T(A), T(B), T([0.5, -0.5])])
C("Ger", [], [T([1.0, 2.0]), T([3.0, 4.0, 5.0])])
C("Einsum", ["ij,kj->ik"], [[T(A), T(B)]])
C("Cdist", [1.0], [T(A), T(B)])
C("Pdist", [2.0], [T(A)])
C("Cholesky", [], [T(M)])
C("CholeskyInverse", [True], [T([[2.0, 1.0, 0.5], [0.0, 1.5, 0.25], [0.0, 0.0, 1.0]])])
C("CholeskySolve", [False], [T([[1.0], [2.0], [3.0]]), T([[2.0, 0.0, 0.0], [1.0, 1.5, 0.0], [0.5, 0.25, 1.0]])])
C("MatrixInverse", [], [T(M)])
C("MatrixDeterminant", [], [T(M)])
C("LogMatrixDeterminant", [], [T(M)])
C("MatrixSolve", [True], [T(M), T([[1.0], [2.0], [3.0]])])
C("MatrixSolveLs", [True], [T(POS), T([[1.0], [2.0]]), T(0.5, Type("float64"))])
C("MatrixTriangularSolve", [True, False], [T([[2.0, 0.0], [1.0, 4.0]]), T([[2.0], [5.0]])])
C("MatrixPower", [2], [T([M])])
C("MatrixExp", [], [T([[0.1, 0.2], [0.3, 0.1]])])
C("MatrixLogarithm", [], [T([[[2.0, 0.0], [0.5, 0.0]], [[0.5, 0.0], [3.0, 0.0]]], c64)])
C("MatrixBandPart", [], [ramp(3, 3), 1, 0])
C("MatrixDiagV3", [], [T([[1.0, 2.0]]), T(0, i32), T(2, i32), T(2, i32), T(0.0)])
C("MatrixDiagPartV3", [], [ramp(1, 3, 3), T(1, i32), T(0.0)])
C("MatrixSetDiagV3", [], [ramp(1, 3, 3), T([[9.0, 8.0, 7.0]]), T(0, i32)])
C("Lstsq", [], [T([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), T([[1.0], [2.0], [3.5]])])
C("LuSolve", [], [T([[1.0], [2.0], [3.0]]), T([[4.0, 1.0, 0.5], [0.25, 2.75, -1.125], [0.125, -0.409, 4.477]]), T([1, 2, 3], i32)])
C("LuUnpack", [], [T([[4.0, 1.0, 0.5], [0.25, 2.75, -1.125], [0.125, -0.409, 4.477]]), T([1, 3, 3], i32)])
C("Orgqr", [], [T([[-114.6, 10.9, 1.1], [-0.304, 38.07, 69.38], [-0.45, -0.17, 62.0]]), T([1.55, 1.94, 0.0])])
C("TridiagonalMatMul", [], [T([[1.0, 2.0, 3.0]]), T([[4.0, 5.0, 6.0]]), T([[7.0, 8.0, 9.0]]), T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])])
C("Svd", [False, False], [T(A)])
C("Renorm", [1, 0, 2.0], [T(A)])
C("Polar", [], [T([1.0, 2.0]), T([0.5, 1.0])])
C("FFTWithSize", [1, False, False], [T([[1.0, 0.0], [2.0, 0.0], [0.5, 0.0]], c64)])
C("FFTWithSize", [1, False, True], [T([1.0, 2.0, 0.5])])
C("STFT", [4, 2, 4, False, True, True], [ramp(8), T([1.0, 1.0, 1.0, 1.0])])
for n in "BartlettWindow BlackmanWindow HammingWindow".split():
    C(n, [], [T([5] if n == "HammingWindow" else 5, i64)])
# Convolutions, pooling, normalisation.
X4, W4 = ramp(1, 2, 4, 4, step=0.13), ramp(2, 2, 3, 3, step=0.07, start=-0.6)
C("Conv2D", [2, 3], [X4, W4])
C("Conv2D", {"out_channel": 2, "kernel_size": 3, "pad_mode": "same"}, [X4, W4])
C("Conv2D", {"out_channel": 2, "kernel_size": 3, "pad_mode": "pad", "pad": 1, "stride": 2}, [X4, W4])
C("Conv2DTranspose", {"out_channel": 2, "kernel_size": 3}, [ramp(1, 2, 2, 2), W4, (1, 2, 4, 4)])
C("Conv2DBackpropInput", {"out_channel": 2, "kernel_size": 3}, [ramp(1, 2, 2, 2), W4, (1, 2, 4, 4)])
C("Conv3D", [1, 2], [ramp(1, 1, 3, 3, 3, step=0.1), ramp(1, 1, 2, 2, 2, step=0.1)])
C("Conv3DTranspose", [1, 1, 2], [ramp(1, 1, 2, 2, 2, step=0.1), ramp(1, 1, 2, 2, 2, step=0.1)])
C("MaxPool", [2, 2], [X4])
C("MaxPool", [3, 2, "same"], [X4])
C("AvgPool", [2, 2], [X4])
C("AvgPool", [3, 2, "same"], [X4])
C("MaxPoolWithArgmax", [2, 2], [X4])
C("MaxPoolWithArgmaxV2", [2, 2], [X4])
C("MaxPool3D", [2, 1], [ramp(1, 1, 3, 3, 3)])
C("AvgPool3D", [2, 1], [ramp(1, 1, 3, 3, 3)])
C("MaxPool3DWithArgmax", [2, 1, 0], [ramp(1, 1, 3, 3, 3)])
C("MaxUnpool2D", [2, 2, 0, (1, 1, 4, 4)], [T([[[[5.0, 6.0], [7.0, 8.0]]]]), T([[[[0, 2], [8, 10]]]], i64)])
C("MaxUnpool3D", [2, 2, 0, (1, 1, 2, 2, 2)], [T([[[[[5.0]]]]]), T([[[[[3]]]]], i64)])
C("AdaptiveAvgPool2D", [[2, 2]], [X4])
C("AdaptiveAvgPool3D", [[1, 2, 2]], [ramp(1, 2, 2, 4)])
C("AdaptiveMaxPool2D", [[2, 2]], [X4])
C("AdaptiveMaxPool3D", [], [ramp(1, 2, 2, 4), T([1, 2, 2], i32)])
C("FractionalMaxPoolWithFixedKsize", [2, 2], [X4, T([[[0.8, 0.3], [0.1, 0.6]]])])
C("FractionalMaxPool3DWithFixedKsize", [1, (1, 1, 2)], [ramp(1, 1, 2, 2, 3), T([[[0.5, 0.4, 0.3]]])])
C("Dilation2D", [1, 1, "VALID"], [X4, ramp(2, 2, 2)])
C("BatchNorm", [], [X4, T([1.0, 2.0]), T([0.5, -0.5]), V([0.1, 0.2]), V([1.5, 0.5])])
C("BatchNorm", [True, 1e-3, 0.2], [X4, V([1.0, 2.0]), V([0.5, -0.5]), V([0.1, 0.2]), V([1.5, 0.5])])
C("LayerNorm", [1, 1, 1e-5], [T(A), T([1.0, 2.0, 0.5]), T([0.0, 0.5, -0.5])])
C("RmsNorm", [1e-6], [T(A), T([1.0, 2.0, 0.5])])
C("BiasAdd", [], [X4, T([1.0, -1.0])])
C("GridSampler2D", [], [X4, T([[[[0.1, -0.2], [0.5, 0.9]]]])])
C("GridSampler3D", [], [ramp(1, 1, 2, 2, 2), T([[[[[0.1, -0.2, 0.3]]]]])])
C("AffineGrid", [True], [T([[[0.8, 0.5, 0.0], [-0.5, 0.8, 0.0]]]), (1, 3, 2, 3)])
C("InTopK", [2], [T(A), T([2, 0], i32)])
C("DataFormatDimMap", [], [T([0, 1, 2, 3], i32)])
C("DataFormatVecPermute", ["NHWC", "NCHW"], [T([5, 6, 7, 8], i32)])
C("BasicLSTMCell", [], [ramp(1, 2), ramp(1, 2, step=0.1), ramp(1, 2, step=0.2), ramp(4, 8, step=0.05), ramp(8, step=0.1)])
# Losses.
C("SoftmaxCrossEntropyWithLogits", [], [T(A), T([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])])
C("SparseSoftmaxCrossEntropyWithLogits", [], [T(A), T([2, 0], i32)])
C("SparseSoftmaxCrossEntropyWithLogits", [True], [T(A), T([2, 0], i32)])
C("SigmoidCrossEntropyWithLogits", [], [T(A), T([[0.0, 1.0, 1.0], [1.0, 0.0, 0.5]])])
C("BCEWithLogitsLoss", ["mean"], [T(A), T([[0.0, 1.0, 1.0], [1.0, 0.0, 0.5]]), T(POS), T(POS)])
C("BinaryCrossEntropy", ["sum"], [T([[0.2, 0.7], [0.5, 0.9]]), T([[0.0, 1.0], [1.0, 1.0]]), T([[1.0, 1.0], [1.0, 1.0]])])
C("KLDivLoss", ["none"], [T(A), T([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])])
C("KLDivLoss", ["sum"], [T(A), T([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])])
C("SmoothL1Loss", [0.5], [T(A), T(B)])
C("SoftMarginLoss", ["mean"], [T(A), T([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])])
C("MultiMarginLoss", [1, 1.0, "mean"], [T(A), T([2, 0], i64)])
C("MultilabelMarginLoss", ["mean"], [T([[0.1, 0.2, 0.4, 0.8]]), T([[3, 0, -1, 1]], i32)])
C("NLLLoss", ["mean"], [T(A), T([2, 0], i32), T([1.0, 2.0, 3.0])])
C("TripletMarginLoss", [2, False, 1e-6, "mean"], [T(A), T(B), T(POS), T(1.0)])
C("CTCGreedyDecoder", [], [ramp(2, 2, 3, step=0.31), T([2, 2], i32)])
C("CTCLoss", [], [ramp(3, 1, 3, step=0.3), T([[0, 0], [0, 1]], i64), T([0, 1], i32), T([3], i32)])
C("LSTM", [2, 3, 1, True, False, 0.0], [ramp(2, 1, 2), ramp(1, 1, 3, step=0.1), ramp(1, 1, 3, step=0.2), ramp(72, 1, 1, step=0.02, start=-0.7)])
C("NoRepeatNGram", [3], [T([[[1, 2, 1, 2, 5, 1, 2]]], i32), T([[[0.7, 0.8, 0.6, 0.9, 0.2, 0.8]]])])
C("FractionalMaxPool", [[1.0, 2.0, 2.0, 1.0]], [ramp(1, 4, 4, 1)])
C("FractionalAvgPool", [[1.0, 2.0, 2.0, 1.0]], [ramp(1, 4, 4, 1)])
C("ExtractGlimpse", [False, False, False, "zero"], [ramp(1, 3, 3, 1), T([2, 2], i32), T([[1.0, 1.0]])])
C("ScaleAndTranslate", ["lanczos3", True], [ramp(1, 3, 4, 1), T([4, 3], i32), T([1.5, 0.7]), T([0.2, 0.1])])
C("ScaleAndTranslate", ["triangle", False], [ramp(1, 3, 4, 1), T([4, 3], i32), T([1.5, 0.7]), T([0.2, 0.1])])
C("ScaleAndTranslate", ["mitchellcubic", True], [ramp(1, 3, 4, 1), T([4, 3], i32), T([1.5, 0.7]), T([0.2, 0.1])])
C("ScaleAndTranslate", ["gaussian", True], [ramp(1, 3, 4, 1), T([4, 3], i32), T([1.5, 0.7]), T([0.2, 0.1])])
C("CTCLossV2", [0, "none"], [T([[[-1.0, -1.2, -1.1]], [[-0.9, -1.4, -1.2]], [[-1.3, -0.8, -1.3]]]), T([[1, 2]], i32), T([3], i32), T([2], i32)])
# Steps of optimizers.
G = [[0.1, -0.2, 0.3], [-0.4, 0.5, -0.6]]
Z = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


def acc():
    return V(Z)


C("Adam", [], [V(A), acc(), acc(), 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, T(G)])
C("Adam", [False, True], [V(A), acc(), acc(), 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, T(G)])
C("AdamNoUpdateParam", [], [acc(), acc(), T(0.9), T(0.999), T(0.1), T(0.9), T(0.999), T(1e-8), T(G)])
C("AdamWeightDecay", [], [V(A), acc(), acc(), 0.1, 0.9, 0.999, 1e-8, 0.01, T(G)])
C("ApplyAdaMax", [], [V(A), acc(), acc(), 0.9, 0.1, 0.9, 0.99, 1e-8, T(G)])
C("ApplyAdadelta", [], [V(A), acc(), acc(), 0.1, 0.9, 1e-6, T(G)])
C("ApplyAdagrad", [], [V(A), acc(), 0.1, T(G)])
C("ApplyAdagradV2", [1e-6], [V(A), acc(), 0.1, T(G)])
C("ApplyAdagradDA", [], [V(A), acc(), acc(), T(G), 0.1, 0.01, 0.02, 3])
C("ApplyAdamWithAmsgrad", [], [V(A), acc(), acc(), acc(), 0.9, 0.999, 0.1, T(G)])
C("ApplyAdamWithAmsgradV2", [], [V(A), acc(), acc(), acc(), 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, T(G)])
C("ApplyAddSign", [], [V(A), acc(), 0.1, 1.0, 0.9, 0.9, T(G)])
C("ApplyPowerSign", [], [V(A), acc(), 0.1, 1.0, 0.9, 0.9, T(G)])
C("ApplyRMSProp", [], [V(A), acc(), acc(), 0.1, T(G), 0.9, 0.5, 1e-6])
C("ApplyCenteredRMSProp", [], [V(A), V([[0.01] * 3] * 2), acc(), acc(), T(G), 0.1, 0.9, 0.5, 1e-3])
C("ApplyFtrl", [], [V(A), acc(), acc(), T(G), 0.1, 0.01, 0.02, -0.5])
C("ApplyGradientDescent", [], [V(A), 0.1, T(G)])
C("ApplyProximalGradientDescent", [], [V(A), 0.1, 0.2, 0.3, T(G)])
C("ApplyProximalAdagrad", [], [V(A), acc(), 0.1, 0.02, 0.03, T(G)])
C("ApplyMomentum", [], [V(A), acc(), 0.1, T(G), 0.9])
C("ApplyMomentum", [True], [V(A), acc(), 0.1, T(G), 0.9])
C("ApplyKerasMomentum", [], [V(A), acc(), 0.1, T(G), 0.9])
C("FusedWeightScaleApplyMomentum", [], [T(0.01), T(0.5), V(A), acc(), T(0.1), T(G), T(0.9)])
C("SGD", [0.1], [V([1.0, 2.0]), T([0.5, -0.5]), V([0.1]), V([0.3, 0.4]), V([0.9]), V([0.0, 0.0])])
C("LARSUpdate", [], [V(A), T(G), T(2.0), T(3.0), 0.01, 0.1])
S = T([1], i32)
C("SparseApplyAdadelta", [1e-6], [V(A), acc(), acc(), 0.1, 0.9, T([G[1]]), S])
C("SparseApplyAdagrad", [0.1], [V(A), acc(), T([G[1]]), S])
C("SparseApplyAdagradV2", [0.1, 1e-6], [V(A), acc(), T([G[1]]), S])
C("SparseApplyFtrl", [0.1, 0.01, 0.02, -0.5], [V(A), acc(), acc(), T([G[1]]), S])
C("FusedSparseFtrl", [0.1, 0.01, 0.02, -0.5], [V(A), acc(), acc(), T([G[1]]), S])
C("SparseApplyFtrlV2", [0.1, 0.01, 0.02, 0.03, -0.5], [V(A), acc(), acc(), T([G[1]]), S])
C("SparseApplyProximalAdagrad", [], [V(A), acc(), 0.1, 0.02, 0.03, T([G[1]]), S])
C("FusedSparseProximalAdagrad", [], [V(A), acc(), T(0.1), T(0.02), T(0.03), T([G[1]]), S])
C("SparseApplyRMSProp", [0.9, 0.5, 1e-6], [V(A), acc(), acc(), 0.1, T([G[1]]), S])
C("FusedSparseAdam", [], [V(A), acc(), acc(), T(0.9), T(0.999), T(0.1), T(0.9), T(0.999), T(1e-8), T([G[1]]), S])
C("FusedSparseLazyAdam", [], [V(A), acc(), acc(), T(0.9), T(0.999), T(0.1), T(0.9), T(0.999), T(1e-8), T([G[1]]), S])
C("Assign", [], [V(A), T(B)])
C("AssignAdd", [], [V(A), T(B)])
C("AssignSub", [], [V(A), T(B)])
# Pictures and boxes.
RGB = T([[[[0.2, 0.5, 0.9], [0.8, 0.1, 0.3]], [[0.4, 0.4, 0.4], [0.0, 0.7, 0.6]]]])
C("RGBToHSV", [], [RGB])
C("HSVToRGB", [], [RGB])
C("AdjustHue", [], [RGB, T(0.2)])
C("AdjustSaturation", [], [RGB, T(0.5)])
C("CropAndResize", ["bilinear", 0.5], [ramp(1, 3, 3, 1), T([[0.1, 0.2, 0.8, 0.9]]), T([0], i32), (2, 2)])
for n in "ResizeBilinearV2 ResizeNearestNeighborV2".split():
    C(n, [False, False], [X4, (3, 5)])
C("ResizeBilinearV2", [True], [X4, (3, 5)])
C("ResizeBilinearV2", [False, True], [X4, (3, 5)])
C("ResizeNearestNeighbor", [(2, 3)], [X4])
C("ResizeBicubic", [False, True], [X4, T([3, 5], i32)])
C("ResizeBicubic", [True, False], [X4, T([3, 5], i32)])
C("ResizeBicubic", [], [X4, T([3, 5], i32)])
C("ResizeLinear1D", [], [ramp(1, 2, 4), (7,)])
C("ResizeArea", [], [ramp(1, 4, 4, 1), T([2, 3], i32)])
C("UpsampleNearest3D", [], [ramp(1, 1, 2, 2, 2), (3, 4, 2), None])
C("UpsampleTrilinear3D", [True], [ramp(1, 1, 2, 2, 2), (3, 4, 2), None])
BOX = [[0.0, 0.0, 1.0, 1.0], [0.1, 0.1, 1.1, 1.1], [2.0, 2.0, 3.0, 3.0]]
C("NonMaxSuppressionV3", [], [T(BOX), T([0.9, 0.8, 0.7]), T(3, i32), T(0.5), T(0.0)])
C("NonMaxSuppressionWithOverlaps", [], [T([[1.0, 0.7, 0.0], [0.7, 1.0, 0.0], [0.0, 0.0, 1.0]]), T([0.9, 0.8, 0.7]), T(3, i32), T(0.5), T(0.0)])
C("CombinedNonMaxSuppression", [], [T([[[[0.0, 0.0, 0.5, 0.5]], [[0.01, 0.0, 0.5, 0.5]], [[0.6, 0.6, 0.9, 0.9]]]]),
                                    T([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]]), T(2, i32), T(3, i32), T(0.5), T(0.15)])
C("NMSWithMask", [0.5], [T([[0.0, 0.0, 10.0, 10.0, 0.9], [1.0, 1.0, 11.0, 11.0, 0.95], [20.0, 20.0, 30.0, 30.0, 0.5]])])
C("IOU", ["iou"], [T([[0.0, 0.0, 10.0, 10.0]]), T([[5.0, 5.0, 15.0, 15.0]])])
C("BoundingBoxEncode", [], [T([[2.0, 2.0, 2.0, 3.0], [2.0, 2.0, 2.0, 3.0]]), T([[1.0, 2.0, 1.0, 4.0], [1.0, 2.0, 1.0, 4.0]])])
C("BoundingBoxDecode", [(768, 1280)], [T([[4.0, 1.0, 2.0, 1.0], [2.0, 2.0, 2.0, 3.0]]), T([[3.0, 1.0, 2.0, 2.0], [1.0, 2.0, 1.0, 4.0]])])
C("CheckValid", [], [T([[0.0, 1.0, 2.0, 3.0], [5.0, 6.0, 30.0, 8.0]]), T([10.0, 10.0, 1.0])])
C("ROIAlign", [2, 2, 0.5, 2], [ramp(1, 1, 4, 4), T([[0.0, 0.5, 0.5, 5.0, 5.5]])])
C("ComputeAccidentalHits", [2], [T([[1, 2], [0, 4], [3, 3]], i64), T([0, 1, 2, 3, 4], i64)])
C("ConfusionMatrix", [3], [T([0, 1, 2, 1], i32), T([0, 2, 2, 1], i32)])
C("SparseToDense", [], [T([[0, 1], [1, 2]], i64), T([1.0, 2.0]), (3, 4)])
C("SparseTensorDenseMatmul", [], [T([[0, 1], [1, 1]], i64), T([5.0, 6.0]), (3, 4), ramp(4, 2)])
C("SparseTensorDenseAdd", [], [T([[0, 0], [0, 1]], i64), T([1.0, 2.0]), T([3, 4], i64), ramp(3, 4)])
C("SparseSlice", [], [T([[0, 1], [1, 2], [1, 3]], i64), T([1.0, 2.0, 3.0]), T([2, 4], i64), T([0, 1], i64), T([2, 2], i64)])
C("Depend", [], [T(A), T(B)])
C("Qr", [False], [T(M)])
C("Geqrf", [], [T(M)])
C("Ormqr", [True, False], [T([[-114.6, 10.9], [-0.304, 38.07], [-0.45, -0.17]]), T([1.55, 1.94]), ramp(3, 2)])
C("Eig", [False], [T([[2.0, 1.0], [1.0, 3.0]])])


def main():
    import mindspore as ms
    from mindspore import ops

    def dtype_of(t):
        return getattr(ms, t.name)

    def value_of(v):
        if isinstance(v, Type):
            return dtype_of(v)
        if isinstance(v, T):
            data = v.data
            if v.dtype is c64:
                pairs = np.array(data)
                data = (pairs[..., 0] + 1j * pairs[..., 1]).astype(np.complex64)
            x = ms.Tensor(data, dtype_of(v.dtype))
            return ms.Parameter(x, name="p%d" % id(v)) if v.parameter else x
        if isinstance(v, list):
            return [value_of(x) for x in v]
        return v

    def number(x):
        if isinstance(x, complex):
            return [number(x.real), number(x.imag)]
        if isinstance(x, float) and not np.isfinite(x):
            return "nan" if x != x else "inf" if x > 0 else "-inf"
        return x

    def nested(x):
        return [nested(y) for y in x] if isinstance(x, list) else number(x)

    def said(y):
        if isinstance(y, (ms.Tensor, ms.Parameter)):
            a = y.asnumpy()
            return {"t": nested(a.astype(np.float64).tolist() if a.dtype.kind == "f" else a.tolist()), "d": str(y.dtype)}
        if isinstance(y, (tuple, list)):
            return [said(x) for x in y]
        if isinstance(y, (bool, int, float, str)) or y is None:
            return number(y)
        return {"dtype": str(y)}

    def plain(v):
        if isinstance(v, Type):
            return {"dtype": v.name}
        if isinstance(v, T):
            entry = {"t": nested(v.data if not isinstance(v.data, np.ndarray) else v.data.tolist()), "d": v.dtype.name}
            if v.parameter:
                entry["p"] = True
            return entry
        if isinstance(v, (list, tuple)):
            return [plain(x) for x in v]
        return number(v)

    out, without = [], []
    for name, attrs, inputs in cases:
        result = None
        try:
            c = getattr(ops, name, None) or getattr(ops.operations, name)
            tuples = [tuple(a) if isinstance(a, list) else value_of(a) for a in attrs] if isinstance(attrs, list) else None
            prim = c(*tuples) if tuples is not None else c(**attrs)
            given = [value_of(v) for v in inputs]
            y = prim(*given)
            ms.hal.synchronize() if hasattr(ms, "hal") and False else None
            result = said(y)
            if not isinstance(y, (tuple, list)):
                result = [result]
            # What was written into parameters.
            written = [said(g) for g in given if isinstance(g, ms.Parameter)]
            if written:
                # What comes back is the parameter, or not set where a kernel's outputs are useless.
                result = {"written": written, "results": result if name in ("BatchNorm",) else []}
        except Exception as e:  # pylint: disable=broad-except
            without.append(name)
            print("no result:", name, str(e).strip().split("\n")[0][:160], file=sys.stderr)
        out.append([name, plain(attrs) if isinstance(attrs, list) else attrs, plain(inputs), result])
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json"), "w", encoding="ascii") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in out) + "\n]\n")
    print(len(out), "cases,", len(without), "without results")


if __name__ == "__main__":
    main()
