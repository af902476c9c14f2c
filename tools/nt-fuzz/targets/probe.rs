//! `make fuzz TARGET=probe`: [`nt_fuzz::probe`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::probe(bytes));
