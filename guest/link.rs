//! Links a box image: no start files, no library, fixed addresses, and functions with equal code only once.

fn main() {
    link(concat!(env!("CARGO_MANIFEST_DIR"), "/../image.ld"));
}

/// Links the image by a script.
pub fn link(script: &str) {
    println!("cargo::rerun-if-changed={script}");
    // The symbols, which the image doesn't have: `crates/image` makes a file of them.
    let map = std::env::var("OUT_DIR").expect("cargo sets it") + "/image.map";
    println!("cargo::rustc-link-arg-bins=-Wl,-Map={map},--no-demangle");
    for argument in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--build-id=none",
        "-Wl,--icf=all",
        "-Wl,-z,noexecstack",
    ] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{script}");
}
