//! The `clickbox` program.
fn main() {}
