//! Placeholder until the command lands.
fn main() {}
