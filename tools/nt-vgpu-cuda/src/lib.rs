//! A libcuda.so.1 without a GPU; with no executor, the tests' stub driver.
