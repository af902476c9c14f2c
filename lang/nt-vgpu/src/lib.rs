//! The software GPU: runs PTX kernels on the CPU, exactly and readably.
