# SPDX-License-Identifier: Apache-2.0
"""Values that programs get wrong: numbers at the borders of their types, texts
that are none, words that mean something to opscope. All from a random number
generator that the caller gives, so that a seed says what a mutant is."""

INTS = [0, 1, -1, 2, 7, 63, 64, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16,
        2**24, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**32 - 1, 2**32,
        2**40 - 1, 2**40, 2**53, 2**53 + 1, -2**53, -2**53 - 1, 10**12, 9 *
        10**12, 9 * 10**12 + 1, 10**15, 10**18, 2**62, 2**63 - 1, 2**63,
        -2**63, -2**63 - 1, 2**64 - 1, 2**64, -2**64]
FLOATS = [0.0, -0.0, 0.5, -1.5, 1e-9, 5e-324, 2.2250738585072014e-308, 1e15,
          1e18, 1e19, 1e38, 3.5e38, 1e308, -1e308, 1.7976931348623157e308,
          float("inf"), float("-inf"), float("nan")]
# Numbers as JSON writers write them, and as they should not.
LITERALS = ["-0", "-0.0", "1e0", "1E5", "1e-7", "1e22", "1e308", "-1e308",
            "1e309", "1e400", "5e-324", "1e-400", "1e999999999",
            "1e-999999999", "NaN", "Infinity", "-Infinity", "nan", "inf",
            "00012", "1.", ".5", "+5", "0x10", "1_000", "1e", "-", "--1",
            "9" * 25, "9" * 400, "-" + "9" * 400, "0." + "3" * 300,
            "123456789012345678901234567890.5", "1" + "0" * 30 + "e-30",
            "3846799222501.5720000001", "0.0000000000001", "true", "null"]

# What opscope looks for in names, categories and keys.
WORDS = ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#9223372036854775807",
         "ProfilerStep#-1", "ProfilerStep*", "ProfilerStep#", "Iteration Start",
         "aten::mm", "aten::copy_", "aten::item", "aten::convolution",
         "autograd::engine::evaluate_function: MmBackward0", "MmBackward0",
         "Optimizer.step#Adam.step", "nccl:all_reduce", "gloo:all_reduce",
         "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)",
         "c10d::allreduce_", "record_param_comms", "Memcpy HtoD (Pageable)",
         "Memcpy DtoH", "Memset (Device)", "[memory]", "[OutOfMemory]",
         "cudaLaunchKernel", "cudaGraphLaunch", "cudaDeviceSynchronize",
         "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMalloc",
         "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
         "nn.Module: Linear_0", "nn.Module: ", "train.py(80): main",
         "torch/nn/modules/module.py(1501): _call_impl", "<built-in method x>",
         "$threading.py:1 run", "jit(f)/mul:Mul", "while/body/op",
         "XLA Ops", "Steps", "XLA Modules", "/device:GPU:0", "/device:TPU:0",
         "/device:CUSTOM:npu", "/host:CPU", "/host:metadata",
         "Task Environment",
         "MemoryAllocation", "MemoryDeallocation", "opscope: dropped",
         "fusion.1", "Stream #7", "python3", "torch-compiled region: 0/0",
         "Torch-Compiled Region: 0/1", "TorchDynamo Cache Lookup", "_compile.",
         "void gemm<float, 128>(int*)", "_ZN2at6native6kernelIfEEvT_",
         "_Z" + "N1a" * 300, "void " + "f<" * 400 + "int" + ">" * 400 + "()",
         "Iterator::Prefetch", "IteratorGetNext", "PyFunction",
         "ThreadpoolListener",
         "process_name", "thread_name", "process_sort_index"]

NASTY = ["", " ", "\x1b[31mred\x1b[0m", "\x07", "\x08\x08", "\x00", "a\x00b",
         "\n", "a\nb", "\r\n", "\t", "\x7f", "\u009b31m", "\u202eevil",
         "\u2066x\u2069", "\u200b", "\ufeff", "\ufffd", "\ufffe", "\u2028",
         "\udc80", "\udcff\udcfe", "\udce2\udc82", "\udced\udca0\udc80",
         "\udcf4\udc90\udc80\udc80", "\udcc0\udc80", "\U0001f600", "\U0010ffff",
         "e\u0301" * 40, '"', '\\', '\\"', "'", ",", ";", "a,b\"c", "=1+1",
         "@SUM(A1)", "-1", "%s%n%d", "../../etc/passwd", "/", "<script>",
         "null",
         "NaN", "true", "-", "..", "0", "1e5", "{}", "[", "a" * 255, "a" * 256,
         "b" * 1023, "c" * 1024, "d" * 4097, "\u00e9" * 700, "\U0001f600" * 90]


def count(rng, most):
    """How many: often few, sometimes as many as allowed."""
    if most <= 1:
        return 1
    return max(1, int(round(most ** (rng.random() ** 1.5))))


def integer(rng):
    r = rng.random()
    if r < 0.75:
        return rng.choice(INTS)
    if r < 0.9:
        return rng.choice(INTS) + rng.randint(-3, 3)
    return rng.randint(-2**64, 2**64) >> rng.randint(0, 64)


def real(rng):
    return rng.choice(FLOATS) if rng.random() < 0.8 else float(integer(rng))


def text(rng, giant=True):
    """Invalid UTF-8 stands as surrogates: encode() writes the bytes."""
    r = rng.random()
    if r < 0.35:
        return rng.choice(WORDS)
    if r < 0.8:
        return rng.choice(NASTY)
    if r < 0.9:
        return rng.choice(WORDS) + rng.choice(NASTY)
    if r < 0.97 or not giant:
        return rng.choice("ax\u00e9\x1b") * rng.choice([2, 9, 63, 64, 65, 300])
    return rng.choice(["x", "\u00e9", "_Z", "::", "/", "<", "((", "a/"]) * \
        rng.choice([5000, 40000, 200000])


def encode(s):
    return s.encode("utf-8", "surrogateescape")


def like(rng, v):
    """Another value near an integer."""
    return rng.choice([v + 1, v - 1, -v, v * 2, v // 2, v << 32, v ^ 1,
                       v * 1000, v ^ (1 << rng.randint(0, 63))])


# --- bytes --------------------------------------------------------------------

def bytes_flip(rng, b, other):
    b = bytearray(b)
    for _ in range(count(rng, 12)):
        if b:
            b[rng.randrange(len(b))] ^= 1 << rng.randrange(8)
    return bytes(b)


def bytes_poke(rng, b, other):
    b = bytearray(b)
    for _ in range(count(rng, 6)):
        if b:
            b[rng.randrange(len(b))] = rng.choice(
                [0, 0xff, 0x7f, 0x80, 0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d, 0x2c,
                 0x0a, rng.randrange(256)])
    return bytes(b)


def bytes_cut(rng, b, other):
    return b[:rng.randrange(len(b) + 1)]


def bytes_head_off(rng, b, other):
    return b[count(rng, max(1, len(b))):]


def span(rng, b):
    at = rng.randrange(len(b) + 1)
    return at, min(len(b), at + count(rng, 4096))


def bytes_drop(rng, b, other):
    at, end = span(rng, b)
    return b[:at] + b[end:]


def bytes_again(rng, b, other):
    at, end = span(rng, b)
    return b[:end] + b[at:end] * count(rng, 30) + b[end:]


def bytes_insert(rng, b, other):
    at = rng.randrange(len(b) + 1)
    what = rng.choice([b"\0" * count(rng, 5000), b"\xff" * count(rng, 40),
                       b"[" * count(rng, 3000), b"{\"a\":" * count(rng, 3000),
                       b"\"", b"\\", b"\n" * count(rng, 99), b"}]", b",,",
                       b"\xef\xbb\xbf", encode(text(rng))])
    return b[:at] + what + b[at:]


def bytes_join(rng, b, other):
    """Another file of the kind behind it, between, or itself again."""
    o = rng.choice([b, other])
    at, end = span(rng, o)
    where = rng.choice([len(b), 0, rng.randrange(len(b) + 1)])
    return b[:where] + rng.choice([o, o[at:end]]) + b[where:]


BYTES = [bytes_flip, bytes_poke, bytes_cut, bytes_head_off, bytes_drop,
         bytes_again, bytes_insert, bytes_join]
