#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| takt_fuzz::control::control(bytes));
