#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| takt_fuzz::audit::audit(bytes));
