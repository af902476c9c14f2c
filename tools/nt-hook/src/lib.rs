//! The preloaded library: thin hook of the CUDA driver.
