//! What several test programs share: golden cases, compiling them, judging what comes out.

// Each test program uses a part of this.
#![allow(dead_code)]

pub mod case;
pub mod client;
pub mod compiled;
pub mod consistency;
pub mod diff;
pub mod envoy;
pub mod mesh;
pub mod program;
pub mod requests;
pub mod shuffle;
pub mod simulate;
pub mod upstream;
