//! The `pilotfish` binary: everything is in the library.

fn main() {}
