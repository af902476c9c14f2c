"""Compiles two kernels of Warp ahead of time and writes their PTX into the folder that is named; needs no GPU.

    python kernels.py FOLDER

Warp's file ends in a NUL byte, since the driver wants one; as a text it is better off without, and ptxas refuses it.
"""

import pathlib
import sys
import tempfile

import warp as wp


@wp.kernel
def fall(position: wp.array(dtype=wp.vec3), velocity: wp.array(dtype=wp.vec3), step: float):
    i = wp.tid()
    v = velocity[i] + wp.vec3(0.0, -9.81, 0.0) * step
    p = position[i] + v * step
    if p[1] < 0.0:
        v = wp.vec3(v[0], -0.5 * v[1], v[2])
    velocity[i] = v
    position[i] = p


@wp.kernel
def extent(position: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    wp.atomic_max(out, 0, wp.length(position[wp.tid()]))


def main():
    wp.config.quiet = True
    wp.config.enable_backward = False
    folder = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        wp.config.kernel_cache_dir = work
        wp.compile_aot_module(__name__, arch=80, use_ptx=True, module_dir=work)
        (made,) = pathlib.Path(work).glob("*.ptx")
        (folder / "kernels.sm_80.ptx").write_bytes(made.read_bytes().rstrip(b"\0"))


if __name__ == "__main__":
    main()
