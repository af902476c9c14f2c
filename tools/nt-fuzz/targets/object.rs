//! `make fuzz TARGET=object`: [`nt_fuzz::object`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::object(bytes));
