//! `make fuzz TARGET=weave`: [`nt_fuzz::weave`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::weave(bytes));
