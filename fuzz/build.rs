//! Lets the target `cost` count the comparisons that the instrumentation reports to libFuzzer.

fn main() {
    for callback in
        ["cmp1", "cmp2", "cmp4", "cmp8", "const_cmp1", "const_cmp2", "const_cmp4", "const_cmp8", "switch"]
    {
        println!("cargo::rustc-link-arg-bin=cost=-Wl,--wrap=__sanitizer_cov_trace_{callback}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
