//! A model of the account for loom.
//!
//! Owns: the model. Does not own: the account.
//! Invariants: the account ends as if one change had come after the other.

use std::sync::Arc;

use afflux_pages::sync;
use loom::thread;

use super::*;

#[test]
fn loom_a_spend_beside_a_payment_is_not_forgotten() {
    sync::model(|| {
        let openings = Arc::new(Openings::new());
        let payer = Arc::clone(&openings);
        let payer = thread::spawn(move || payer.pay_back(1));
        openings.spend(3);
        payer.join().unwrap();
        let remaining = openings.remaining();
        assert!([PAGES_MAX as u64 - 2, PAGES_MAX as u64 - 3].contains(&remaining), "{remaining}");
    });
}
