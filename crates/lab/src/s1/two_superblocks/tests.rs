use super::*;

fn share_of_b(variant: &Variant, nr_requests: u64, request_kib: u64) -> f64 {
    let queue = Queue { nr_requests, request_kib, batch: 32, at_submission: false };
    let row = run_one(variant, Begun::Background, queue, 20_000, 1).unwrap();
    row.metrics.get("share_of_b").and_then(serde_json::Value::as_f64).unwrap()
}

#[test]
fn a_is_exhausted_first_only_where_its_queue_takes_it_whole() {
    // 82 MB in a queue of 128 MB, and in one of 8 MB.
    assert!(share_of_b(&Variant::PDFLUSH, 2048, 64) < 0.1);
    assert!(share_of_b(&Variant::PDFLUSH, 128, 64) > 0.3);
}

#[test]
fn with_flushers_both_have_the_same() {
    assert!((share_of_b(&Variant::FLUSHERS, 2048, 64) - 0.5).abs() < 0.05);
}
