//! Puts probes into kernels: IR and PTX to instrumented PTX.
