"""Programs of one op each, for the native engine and for PyTorch alike.

A program is (values, calls). `values` are the tensors that it starts from, by name: (element type, sizes). Those of a floating
type are parameters unless their name starts with "input". A call is (op, arguments) or (op, arguments, names of its results);
"$x" is the tensor called x, and the result of a call without names is "y". The sum of the last call's floating results is the
loss, without those whose name starts with "_".

Each is run in two styles. "bare": parameters go in, the results are summed up. "inside": what goes in was made by other ops, and
what comes back is no expanded number.
"""

from __future__ import annotations

STYLES = ("bare", "inside")


def is_parameter(name: str, dtype: str) -> bool:
    return dtype == "float32" and not name.startswith("input")



MATRIX = {"a": ("float32", [4, 6])}
PAIR = {"a": ("float32", [4, 6]), "b": ("float32", [4, 6])}
ROW = {"a": ("float32", [4, 6]), "b": ("float32", [6])}
CUBE = {"a": ("float32", [2, 3, 4])}
MASKED = {"a": ("float32", [4, 6]), "mask": ("bool", [4, 6])}
IMAGE = {"a": ("float32", [2, 3, 8, 8])}
SIGNAL = {"a": ("float32", [2, 3, 8])}
TARGET = {"a": ("float32", [4, 6]), "input": ("float32", [4, 6])}
POSITIONS = {"a": ("float32", [4, 6]), "index": ("int64", [2])}
PLACES = {"a": ("float32", [4, 6]), "index": ("int64", [3, 6]), "b": ("float32", [3, 6])}

PROGRAMS: dict = {}


def _add(name: str, values: dict, *calls) -> None:
    assert name not in PROGRAMS, name
    PROGRAMS[name] = (values, calls)


def _one(op: str, values: dict, /, *results: str, note: str = "", **arguments) -> None:
    """A program of one op whose tensor arguments have the names of the values."""
    _add(f"{op}{' ' + note if note else ''}", values, (f"aten.{op}", arguments, results or ("y",)))


# -- pointwise --
_UNARY = """abs reciprocal exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh 
sigmoid erf erfc relu silu gelu mish hardswish hardsigmoid neg floor ceil round trunc sign celu elu leaky_relu
softplus hardtanh hardshrink softshrink clone"""
for _op in _UNARY.split():
    _one(f"{_op}.default", MATRIX, self="$a")
_one("leaky_relu.default", MATRIX, note="by a slope", self="$a", negative_slope=0.2)
_one("elu.default", MATRIX, note="by alpha", self="$a", alpha=0.5)
_one("celu.default", MATRIX, note="by alpha", self="$a", alpha=0.5)
_one("softplus.default", MATRIX, note="by beta", self="$a", beta=2)
_one("hardtanh.default", MATRIX, note="relu6", self="$a", min_val=0.0, max_val=6.0)
_one("hardshrink.default", MATRIX, note="by lambda", self="$a", lambd=0.25)
_one("threshold.default", MATRIX, self="$a", threshold=0.5, value=0.0)
_one("log_sigmoid_forward.default", MATRIX, "y", "_buffer", self="$a")
_one("glu.default", MATRIX, self="$a")
_one("glu.default", MATRIX, note="dim 0", self="$a", dim=0)
_one("_prelu_kernel.default", {"a": ("float32", [4, 6]), "b": ("float32", [1, 6])}, self="$a", weight="$b")
_one("clamp.default", MATRIX, self="$a", min=-1, max=1)
_one("clamp.default", MATRIX, note="from below", self="$a", min=0.5)
_one("clamp.default", MATRIX, note="from above", self="$a", min=None, max=0.5)
_BOUNDED = {"a": ("float32", [4, 6]), "input1": ("float32", []), "input2": ("float32", [6])}
_one("clamp.Tensor", _BOUNDED, self="$a", min="$input1", max="$input2")
_one("clamp.Tensor", _BOUNDED, note="from below", self="$a", min="$input2")
_one("clamp.Tensor", _BOUNDED, note="from above", self="$a", min=None, max="$input1")
_one("clamp_min.default", MATRIX, self="$a", min=0.5)
_one("clamp_max.default", MATRIX, self="$a", max=0.5)
_one("nan_to_num.default", MATRIX, self="$a")
_one("logit.default", MATRIX, self="$a")
_one("logit.default", MATRIX, note="with eps", self="$a", eps=0.01)
for _op in ("maximum.default", "minimum.default", "pow.Tensor_Tensor", "add.Tensor", "sub.Tensor", "mul.Tensor",
            "div.Tensor", "xlogy.Tensor"):  # fmt: skip
    _key = "exponent" if _op.startswith("pow") else "other"
    _one(_op, PAIR, self="$a", **{_key: "$b"})
    _one(_op, ROW, note="over rows", self="$a", **{_key: "$b"})
    _one(_op, TARGET, note="of an input", self="$a", **{_key: "$input"})
    _one(_op, TARGET, note="by an input", self="$input", **{_key: "$a"})
_one("add.Tensor", PAIR, note="alpha", self="$a", other="$b", alpha=3)
_one("sub.Tensor", PAIR, note="alpha", self="$a", other="$b", alpha=3)
_one("rsub.Scalar", MATRIX, self="$a", other=1.0)
_one("rsub.Scalar", MATRIX, note="alpha", self="$a", other=1.0, alpha=2)
_one("mul.Scalar", MATRIX, self="$a", other=3)
_one("div.Scalar", MATRIX, self="$a", other=3)
_one("add.Scalar", MATRIX, self="$a", other=3)
_one("sub.Scalar", MATRIX, self="$a", other=3)
for _exponent in (2, 3, 0.5, 2.5, 1, 0):
    _one("pow.Tensor_Scalar", MATRIX, note=str(_exponent), self="$a", exponent=_exponent)
_one("pow.Scalar", MATRIX, self=2, exponent="$a")
_one("fmod.Scalar", MATRIX, self="$a", other=2)
_one("remainder.Scalar", MATRIX, self="$a", other=2)
_one("div.Tensor_mode", PAIR, note="down", self="$a", other="$b", rounding_mode="floor")
_one("lerp.Scalar", PAIR, self="$a", end="$b", weight=0.25)
_one("lerp.Tensor", {**PAIR, "c": ("float32", [6])}, self="$a", end="$b", weight="$c")
_one("addcmul.default", {**PAIR, "c": ("float32", [6])}, self="$a", tensor1="$b", tensor2="$c")
_one("addcmul.default", {**PAIR, "c": ("float32", [6])}, note="value", self="$a", tensor1="$b", tensor2="$c", value=2)
_one("addcdiv.default", {**PAIR, "c": ("float32", [6])}, self="$a", tensor1="$b", tensor2="$c")
_one("addcdiv.default", {**PAIR, "c": ("float32", [6])}, note="value", self="$a", tensor1="$b", tensor2="$c", value=2)
_one("where.self", {**PAIR, "mask": ("bool", [4, 6])}, condition="$mask", self="$a", other="$b")
_one("masked_fill.Scalar", MASKED, self="$a", mask="$mask", value=1.0)
_one("masked_fill.Tensor", {**MASKED, "b": ("float32", [])}, self="$a", mask="$mask", value="$b")
_one("_to_copy.default", MATRIX, self="$a", dtype="torch.bfloat16")
_one("bernoulli.default", MATRIX, self="$a")

# -- pieces and copies --
_one("stack.default", PAIR, tensors=["$a", "$b"])
_one("stack.default", PAIR, note="dim 1", tensors=["$a", "$b"], dim=1)
_one("stack.default", TARGET, note="with an input", tensors=["$a", "$input"], dim=-1)
_one("cat.default", PAIR, tensors=["$a", "$b"])
_one("cat.default", TARGET, note="with an input", tensors=["$input", "$a"], dim=-1)
_one("tril.default", MATRIX, self="$a")
_one("tril.default", MATRIX, note="diagonal", self="$a", diagonal=1)
_one("triu.default", MATRIX, self="$a")
_one("triu.default", MATRIX, note="diagonal", self="$a", diagonal=-1)
_one("repeat.default", MATRIX, self="$a", repeats=[2, 3])
_one("repeat.default", MATRIX, note="a new dimension", self="$a", repeats=[2, 1, 1])
_one("repeat.default", MATRIX, note="once", self="$a", repeats=[1, 1])
_one("unbind.int", CUBE, "y", "z", self="$a")
_one("unbind.int", CUBE, "x", "y", "z", note="dim 1", self="$a", dim=1)
_one("split.Tensor", CUBE, "x", "y", note="of two", self="$a", split_size=2, dim=-1)
_one("split_with_sizes.default", CUBE, "x", "y", self="$a", split_sizes=[1, 3], dim=-1)
_one("flip.default", CUBE, self="$a", dims=[0, 2])
_one("roll.default", CUBE, self="$a", shifts=[1, -1], dims=[0, 2])
_one("constant_pad_nd.default", CUBE, self="$a", pad=[1, 2])
_one("constant_pad_nd.default", CUBE, note="with a value", self="$a", pad=[1, 2], value=1.0)
_one("reflection_pad2d.default", IMAGE, self="$a", padding=[1, 2, 3, 1])
_one("reflection_pad1d.default", SIGNAL, self="$a", padding=[1, 2])
_one("replication_pad2d.default", IMAGE, self="$a", padding=[1, 2, 3, 1])
_one("replication_pad1d.default", SIGNAL, self="$a", padding=[1, 2])
_one("pixel_shuffle.default", {"a": ("float32", [2, 8, 3, 3])}, self="$a", upscale_factor=2)
_one("pixel_unshuffle.default", IMAGE, self="$a", downscale_factor=2)
_one("im2col.default", IMAGE, self="$a", kernel_size=[3, 3], dilation=[1, 1], padding=[1, 1], stride=[2, 2])
_one("col2im.default", {"a": ("float32", [2, 12, 16])}, self="$a", output_size=[8, 8], kernel_size=[2, 2], dilation=[1, 1],
     padding=[0, 0], stride=[2, 2])  # fmt: skip
_one("unfold.default", SIGNAL, self="$a", dimension=2, size=3, step=2)
_one("squeeze.dim", {"a": ("float32", [4, 1, 6])}, self="$a", dim=1)
_one("squeeze.default", {"a": ("float32", [4, 1, 6])}, self="$a")
_one("squeeze.dims", {"a": ("float32", [4, 1, 6, 1])}, self="$a", dim=[1, 3])
_one("unsqueeze.default", MATRIX, self="$a", dim=-1)
_one("transpose.int", CUBE, self="$a", dim0=0, dim1=2)
_one("permute.default", CUBE, self="$a", dims=[2, 0, 1])
_one("expand.default", {"a": ("float32", [4, 1])}, self="$a", size=[3, 4, 6])
_one("view.default", CUBE, self="$a", size=[6, 4])
_one("slice.Tensor", CUBE, self="$a", dim=2, start=1, end=4, step=2)
_one("select.int", CUBE, self="$a", dim=1, index=-1)
_one("diagonal.default", {"a": ("float32", [4, 4])}, self="$a")
_one("diagonal.default", {"a": ("float32", [2, 4, 4])}, note="of many", self="$a", offset=1, dim1=1, dim2=2)
_one("diag_embed.default", MATRIX, self="$a")
_one("alias.default", MATRIX, self="$a")

# -- reductions --
for _op in ("sum.default", "mean.default", "max.default", "min.default", "prod.default"):
    _one(_op, CUBE, self="$a")
_one("sum.dim_IntList", CUBE, self="$a", dim=[0, 2])
_one("sum.dim_IntList", CUBE, note="kept", self="$a", dim=[1], keepdim=True)
_one("mean.dim", CUBE, self="$a", dim=[-1])
_one("mean.dim", CUBE, note="kept", self="$a", dim=[0, -1], keepdim=True)
for _op in ("amax.default", "amin.default"):
    _one(_op, CUBE, self="$a")
    _one(_op, CUBE, note="dim", self="$a", dim=[1])
    _one(_op, CUBE, note="dims", self="$a", dim=[0, -1])
    _one(_op, CUBE, note="kept", self="$a", dim=[-1], keepdim=True)
for _op in ("max.dim", "min.dim"):
    _names = ("values", "indices")
    _one(_op, CUBE, *_names, self="$a", dim=1)
    _one(_op, CUBE, *_names, note="kept", self="$a", dim=-2, keepdim=True)
for _op in ("var.correction", "std.correction"):
    _one(_op, CUBE, note="of all", self="$a")
    _one(_op, CUBE, self="$a", dim=[1])
    _one(_op, CUBE, note="dims", self="$a", dim=[0, 2], correction=0)
    _one(_op, CUBE, note="kept", self="$a", dim=[-1], correction=0, keepdim=True)
_one("var_mean.correction", CUBE, "y", "z", note="of all", self="$a")
_one("var_mean.correction", CUBE, "y", "z", self="$a", dim=[2], correction=0, keepdim=True)
_one("var_mean.correction", CUBE, "y", "z", note="dims", self="$a", dim=[0, 2])
_one("std_mean.correction", CUBE, "y", "z", self="$a", dim=[2], correction=0, keepdim=True)
_one("prod.dim_int", CUBE, self="$a", dim=1)
_one("prod.dim_int", CUBE, note="kept", self="$a", dim=-1, keepdim=True)
_one("logsumexp.default", CUBE, self="$a", dim=[1])
_one("logsumexp.default", CUBE, note="kept", self="$a", dim=[-1], keepdim=True)
_one("cumsum.default", CUBE, self="$a", dim=1)
_one("cumsum.default", {"a": ("float32", [1, 4])}, note="of one", self="$a", dim=0)
_one("linalg_vector_norm.default", CUBE, self="$a")
for _ord in (1, 3.0, 2.5, float("inf")):
    _one("linalg_vector_norm.default", CUBE, note=f"{_ord}", self="$a", ord=_ord)
_one("linalg_vector_norm.default", CUBE, note="of rows", self="$a", ord=2.0, dim=[-1], keepdim=True)
_one("linalg_vector_norm.default", CUBE, note="of columns", self="$a", ord=2, dim=[1])
_one("linalg_vector_norm.default", CUBE, note="largest of columns", self="$a", ord=float("inf"), dim=[1])
_one("linalg_vector_norm.default", CUBE, note="1 of columns", self="$a", ord=1, dim=[0, 1])
_one("sort.default", CUBE, "values", "indices", self="$a")
_one("sort.default", CUBE, "values", "indices", note="dim", self="$a", dim=0, descending=True)
_one("sort.stable", CUBE, "values", "indices", self="$a", stable=True, dim=1)
_one("topk.default", CUBE, "values", "indices", self="$a", k=2)
_one("topk.default", CUBE, "values", "indices", note="dim", self="$a", k=2, dim=1)
_one("_softmax.default", CUBE, self="$a", dim=1, half_to_float=False)
_one("_log_softmax.default", CUBE, self="$a", dim=-1, half_to_float=False)

# -- positions --
_one("index_select.default", POSITIONS, self="$a", dim=0, index="$index")
_one("index_select.default", POSITIONS, note="dim -1", self="$a", dim=-1, index="$index")
_one("index.Tensor", POSITIONS, self="$a", indices=["$index"])
_one("index.Tensor", {**POSITIONS, "other": ("int64", [2])}, note="two", self="$a", indices=["$index", "$other"])
_one("index.Tensor", {"a": ("float32", [2, 4, 6]), "index": ("int64", [3]), "other": ("int64", [5, 1])}, note="two of three",
     self="$a", indices=["$index", "$other"])  # fmt: skip
_one("index.Tensor", POSITIONS, note="of columns", self="$a", indices=[None, "$index"])
_one("index.Tensor", {"a": ("float32", [2, 4, 6]), "index": ("int64", [3]), "other": ("int64", [3])}, note="around a dimension",
     self="$a", indices=["$index", None, "$other"])  # fmt: skip
_one("gather.default", {k: PLACES[k] for k in ("a", "index")}, self="$a", dim=0, index="$index")
_one("scatter.src", PLACES, self="$a", dim=0, index="$index", src="$b")
_one("scatter.value", {k: PLACES[k] for k in ("a", "index")}, self="$a", dim=0, index="$index", value=1.0)
_one("scatter_add.default", PLACES, self="$a", dim=0, index="$index", src="$b")
_SOURCE = {"a": ("float32", [4, 6]), "index": ("int64", [2]), "b": ("float32", [2, 6])}
_one("index_add.default", _SOURCE, self="$a", dim=0, index="$index", source="$b")
_one("index_add.default", _SOURCE, note="alpha", self="$a", dim=0, index="$index", source="$b", alpha=2)
_one("index_copy.default", _SOURCE, self="$a", dim=0, index="$index", source="$b")
_one("index_fill.int_Scalar", POSITIONS, self="$a", dim=0, index="$index", value=1.0)
_one("index_put.default", _SOURCE, self="$a", indices=["$index"], values="$b")
_one("index_put.default", _SOURCE, note="added", self="$a", indices=["$index"], values="$b", accumulate=True)
_one("index_put.default", {**POSITIONS, "b": ("float32", [])}, note="one value", self="$a", indices=["$index"], values="$b")
_one("masked_scatter.default", {**MASKED, "b": ("float32", [24])}, self="$a", mask="$mask", source="$b")
_one("embedding.default", {"a": ("float32", [10, 6]), "index": ("int64", [2, 3])}, weight="$a", indices="$index")
_one("embedding.default", {"a": ("float32", [10, 6]), "index": ("int64", [2, 3])}, note="with padding", weight="$a",
     indices="$index", padding_idx=1)  # fmt: skip

# -- products --
_BATCHES = {"a": ("float32", [2, 3, 5]), "b": ("float32", [2, 3, 4]), "c": ("float32", [2, 4, 5])}
_one("baddbmm.default", _BATCHES, self="$a", batch1="$b", batch2="$c")
_one("baddbmm.default", _BATCHES, note="beta and alpha", self="$a", batch1="$b", batch2="$c", beta=2, alpha=0.5)
_one("baddbmm.default", {**_BATCHES, "a": ("float32", [5])}, note="over all", self="$a", batch1="$b", batch2="$c")
_MATRICES = {"a": ("float32", [5]), "b": ("float32", [3, 4]), "c": ("float32", [4, 5])}
_one("addmm.default", _MATRICES, self="$a", mat1="$b", mat2="$c")
_one("addmm.default", _MATRICES, note="beta and alpha", self="$a", mat1="$b", mat2="$c", beta=2, alpha=0.5)
_one("mm.default", {k: _MATRICES[k] for k in "bc"}, self="$b", mat2="$c")
_one("bmm.default", {k: _BATCHES[k] for k in "bc"}, self="$b", mat2="$c")
_one("mv.default", {"a": ("float32", [3, 4]), "b": ("float32", [4])}, self="$a", vec="$b")
_one("dot.default", {"a": ("float32", [4]), "b": ("float32", [4])}, self="$a", tensor="$b")

# -- pooling --
_one("max_pool2d_with_indices.default", IMAGE, "y", "places", self="$a", kernel_size=[2, 2], stride=[2, 2])
_one("max_pool2d_with_indices.default", IMAGE, "y", "places", note="all arguments", self="$a", kernel_size=[3, 3], stride=[2, 2],
     padding=[1, 1], dilation=[2, 2], ceil_mode=True)  # fmt: skip
_one("avg_pool2d.default", IMAGE, self="$a", kernel_size=[2, 2], stride=[2, 2])
_one("avg_pool2d.default", IMAGE, note="all arguments", self="$a", kernel_size=[3, 3], stride=[2, 2], padding=[1, 1],
     ceil_mode=True, count_include_pad=False)  # fmt: skip
_one("_adaptive_avg_pool2d.default", IMAGE, self="$a", output_size=[3, 2])
_one("adaptive_max_pool2d.default", IMAGE, "y", "places", self="$a", output_size=[3, 2])
_one("upsample_nearest2d.default", IMAGE, self="$a", output_size=[16, 16])
_one("upsample_nearest1d.default", SIGNAL, self="$a", output_size=[16])
_one("upsample_bilinear2d.default", IMAGE, self="$a", output_size=[16, 12], align_corners=False)
_one("upsample_bicubic2d.default", IMAGE, self="$a", output_size=[16, 12], align_corners=True)

# -- normalisation --
_SCALED = {"a": ("float32", [4, 6]), "w": ("float32", [6]), "b": ("float32", [6])}
_one("native_layer_norm.default", _SCALED, "y", "_m", "_r", input="$a", normalized_shape=[6], weight="$w", bias="$b", eps=1e-5)
_one("native_layer_norm.default", MATRIX, "y", "_m", "_r", note="alone", input="$a", normalized_shape=[6], weight=None, bias=None,
     eps=1e-5)  # fmt: skip
_CHANNELS = {"a": ("float32", [2, 6, 4, 4]), "w": ("float32", [6]), "b": ("float32", [6])}
_one("native_group_norm.default", _CHANNELS, "y", "_m", "_r", input="$a", weight="$w", bias="$b", N=2, C=6, HxW=16, group=3, eps=1e-5)  # fmt: skip
_one("native_batch_norm.default", {**_CHANNELS, "input1": ("float32", [6]), "input2": ("float32", [6])}, "y", "_m", "_r", input="$a",
     weight="$w", bias="$b", running_mean="$input1", running_var="$input2", training=True, momentum=0.1, eps=1e-5)  # fmt: skip

# -- losses --
_CLASSES = {"a": ("float32", [4, 6]), "classes": ("int64", [4])}
for _number, _word in enumerate(("each", "mean", "sum")):
    _reduction = {} if _number == 1 else {"reduction": _number}
    _one("nll_loss_forward.default", _CLASSES, "y", "_total", note=_word, self="$a", target="$classes", weight=None,
         reduction=_number, ignore_index=-100)  # fmt: skip
    for _op in ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"):
        _one(f"{_op}.default", TARGET, note=_word, self="$a", target="$input", **_reduction)
    _weights = {"weight": None, **_reduction} if _reduction else {}
    _one("binary_cross_entropy.default", TARGET, note=_word, self="$a", target="$input", **_weights)
    _weights = {"weight": None, "pos_weight": None, **_reduction} if _reduction else {}
    _one("binary_cross_entropy_with_logits.default", TARGET, note=_word, self="$a", target="$input", **_weights)
_one("nll_loss_forward.default", {**_CLASSES, "input": ("float32", [6])}, "y", "_total", note="weights", self="$a",
     target="$classes", weight="$input", reduction=1, ignore_index=-100)  # fmt: skip
_one("nll_loss2d_forward.default", {"a": ("float32", [2, 3, 4, 4]), "classes": ("int64", [2, 4, 4])}, "y", "_total", self="$a",
     target="$classes", weight=None, reduction=1, ignore_index=-100)  # fmt: skip
for _op in ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"):
    _one(f"{_op}.default", PAIR, note="of two parameters", self="$a", target="$b")
_one("smooth_l1_loss.default", TARGET, note="beta", self="$a", target="$input", reduction=1, beta=0.5)
_one("huber_loss.default", TARGET, note="delta", self="$a", target="$input", reduction=1, delta=0.5)
_WEIGHTED = {**TARGET, "input2": ("float32", [6])}
_one("binary_cross_entropy.default", _WEIGHTED, note="weights", self="$a", target="$input", weight="$input2")
_one("binary_cross_entropy_with_logits.default", _WEIGHTED, note="weights", self="$a", target="$input", weight="$input2")
_one("binary_cross_entropy_with_logits.default", _WEIGHTED, note="weights of positives", self="$a", target="$input", weight=None,
     pos_weight="$input2")  # fmt: skip
_one("binary_cross_entropy_with_logits.default", {**PAIR, "input": ("float32", [6])}, note="weights of positives, two parameters",
     self="$a", target="$b", weight=None, pos_weight="$input")  # fmt: skip
_one("binary_cross_entropy_with_logits.default", {**PAIR, "input": ("float32", [6])}, note="weights, two parameters", self="$a",
     target="$b", weight="$input")  # fmt: skip
_one("binary_cross_entropy.default", {**PAIR, "input": ("float32", [6])}, note="weights, two parameters", self="$a", target="$b",
     weight="$input")  # fmt: skip

# -- in place --
_TWO = {"self": "$z", "other": "$b"}
_FIRST = ("aten.mul.Tensor", {"self": "$a", "other": 2.0}, ("z",))
for _op in ("add_", "sub_", "mul_", "div_"):
    _add(f"{_op}.Tensor", ROW, _FIRST, (f"aten.{_op}.Tensor", _TWO, ("y",)))
for _op in ("relu_", "sigmoid_", "tanh_", "exp_", "neg_", "abs_", "silu_", "gelu_", "leaky_relu_", "hardtanh_", "elu_"):
    _add(f"{_op}.default", MATRIX, _FIRST, (f"aten.{_op}.default", {"self": "$z"}, ("y",)))
_add("clamp_.default", MATRIX, _FIRST, ("aten.clamp_.default", {"self": "$z", "min": 0.0}, ("y",)))
_add("masked_fill_.Scalar", MASKED, _FIRST, ("aten.masked_fill_.Scalar", {"self": "$z", "mask": "$mask", "value": 0.0}, ("y",)))

# -- results that nothing depends on --
_one("unbind.int", CUBE, "y", "_z", note="of which one is used", self="$a")
_one("split.Tensor", CUBE, "_x", "y", note="of which one is used", self="$a", split_size=2, dim=-1)
_one("split_with_sizes.default", CUBE, "y", "_x", note="of which one is used", self="$a", split_sizes=[1, 3], dim=-1)
_one("var_mean.correction", CUBE, "y", "_m", note="without the mean", self="$a", dim=[2])
_one("var_mean.correction", CUBE, "_v", "y", note="without the variance", self="$a", dim=[2])

# -- masks, counts and new tensors, which a product then takes --
_TIMES = ("aten.mul.Tensor", {"self": "$a", "other": "$m"}, ("y",))
_MASKS = {"a": ("float32", [4, 6]), "mask": ("bool", [4, 6]), "other": ("bool", [6])}
_ROW_INPUT = {"a": ("float32", [4, 6]), "input": ("float32", [6])}
_COUNTS = {"a": ("float32", [4, 6]), "counts": ("int64", [4, 6])}


def _times(op: str, values: dict, note: str = "", **arguments) -> None:
    _add(f"{op}{' ' + note if note else ''}, then mul", values, (f"aten.{op}", arguments, ("m",)), _TIMES)


for _op in ("eq", "ne", "lt", "le", "gt", "ge"):
    _times(f"{_op}.Scalar", MATRIX, self="$a", other=0.5)
    _times(f"{_op}.Tensor", _ROW_INPUT, self="$a", other="$input")
for _op in ("isnan", "isinf", "logical_not"):
    _times(f"{_op}.default", MATRIX, self="$a")
for _op in ("logical_and", "logical_or", "logical_xor"):
    _times(f"{_op}.default", _ROW_INPUT, "of numbers", self="$a", other="$input")
    _times(f"{_op}.default", _MASKS, self="$mask", other="$other")
for _op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _times(f"{_op}.Tensor", _MASKS, self="$mask", other="$other")
_times("bitwise_not.default", _MASKS, self="$mask")
for _op in ("any", "all"):
    _times(f"{_op}.default", _MASKS, self="$mask")
    _times(f"{_op}.dim", _MASKS, self="$mask", dim=0)
    _times(f"{_op}.dim", _MASKS, "kept", self="$mask", dim=1, keepdim=True)
for _op in ("argmax", "argmin"):
    _times(f"{_op}.default", MATRIX, self="$a")
    _times(f"{_op}.default", MATRIX, "dim 0", self="$a", dim=0)
    _times(f"{_op}.default", MATRIX, "kept", self="$a", dim=1, keepdim=True)
_times("floor_divide.default", {"a": ("float32", [4, 6]), "input": ("float32", [4, 6])}, self="$input", other="$input")
for _op in ("zeros_like", "ones_like", "empty_like"):
    _times(f"{_op}.default", MATRIX, self="$a")
    _times(f"{_op}.default", _COUNTS, "of counts", self="$counts")
_times("full_like.default", MATRIX, self="$a", fill_value=2.0)
_times("new_zeros.default", MATRIX, self="$a", size=[6])
_times("new_ones.default", MATRIX, self="$a", size=[4, 1])
_times("new_empty.default", MATRIX, self="$a", size=[1, 6])
_times("new_full.default", MATRIX, self="$a", size=[6], fill_value=3.0)
_times("arange.default", MATRIX, end=6)
_times("arange.start", MATRIX, start=2, end=8)
_times("arange.start_step", MATRIX, start=2, end=14, step=2)
for _op in ("zeros", "ones", "rand", "randn"):
    _times(f"{_op}.default", MATRIX, size=[4, 6])
_times("full.default", MATRIX, size=[4, 6], fill_value=0.5)

_add("logical_and_.default", _MASKS, ("aten.gt.Scalar", {"self": "$a", "other": 0.5}, ("m",)),
     ("aten.logical_and_.default", {"self": "$m", "other": "$other"}, ("m",)), _TIMES)  # fmt: skip
_add("_unsafe_view.default", MATRIX, _FIRST, ("aten._unsafe_view.default", {"self": "$z", "size": [6, 4]}, ("y",)))

# -- convolutions of all kinds --
def _convolution(note: str, x: list, weight: list, **other) -> None:
    space = len(x) - 2
    arguments = {"stride": [1] * space, "padding": [0] * space, "dilation": [1] * space, "transposed": False,
                 "output_padding": [0] * space, "groups": 1, **other}  # fmt: skip
    outputs = weight[1] * arguments["groups"] if arguments["transposed"] else weight[0]
    values = {"a": ("float32", x), "w": ("float32", weight), "b": ("float32", [outputs])}
    given = {"input": "$a", "weight": "$w", "bias": "$b"}
    _add(f"convolution.default {note}", values, ("aten.convolution.default", {**given, **arguments}, ("y",)))


_convolution("of signals", [2, 3, 8], [5, 3, 3])
_convolution("of images", [2, 3, 8, 8], [5, 3, 3, 3], padding=[1, 1])
_convolution("in strides", [2, 4, 9, 9], [6, 4, 3, 3], stride=[2, 2])
_convolution("transposed", [2, 4, 6, 6], [4, 3, 3, 3], stride=[2, 2], transposed=True)
_convolution("transposed, in groups", [2, 4, 6, 6], [4, 3, 3, 3], groups=2, transposed=True)
_convolution("in groups", [2, 4, 8, 8], [8, 2, 3, 3], groups=2)
_convolution("channel by channel", [2, 4, 8, 8], [4, 1, 3, 3], groups=4, padding=[1, 1])
_convolution("spread out", [1, 3, 12, 10], [4, 3, 3, 3], dilation=[2, 2])
_convolution("of one pixel", [2, 4, 6, 6], [8, 4, 1, 1])

# -- in place without a backward: refused where a gradient would be lost --
_OTHERS = {"a": ("float32", [4, 6]), "input": ("float32", [4, 6])}
REFUSED = {
    op: (_OTHERS, (_FIRST, (f"aten.{op}", {"self": "$z", **arguments}, ("y",))))
    for op, arguments in {
        "zero_.default": {},
        "fill_.Scalar": {"value": 1.0},
        "copy_.default": {"src": "$input"},
        "div_.Scalar": {"other": 2},
        "pow_.Scalar": {"exponent": 3},
        "lerp_.Scalar": {"end": "$input", "weight": 0.25},
        "addcmul_.default": {"tensor1": "$input", "tensor2": "$input"},
        "normal_.default": {},
    }.items()
}
