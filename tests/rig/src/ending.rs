//! A process that ends with a value.
//!
//! Owns: its kill.
//! Does not own: its start.
//! Invariants: no such process outlives its value.

use std::process::Child;

/// A process that is killed with this value.
#[derive(Debug)]
pub struct Ending(pub Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
