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
fn a_sleep_that_outlasts_the_queue_costs_time() {
    // 113 requests of 24 KB last 35 ms at 82 MB/s; a sleep lasts 100, and nobody else writes.
    let queue = Queue { nr_requests: 128, request_kib: 24, batch: 32, at_submission: false };
    let b_ends_s = |variant| {
        let row = run_one(variant, Begun::Background, queue, 20_000, 1).unwrap();
        row.metrics.get("b_ends_s").and_then(serde_json::Value::as_f64).unwrap()
    };
    let (woken, plain) = (b_ends_s(&Variant::PDFLUSH), b_ends_s(&Variant::PLAIN));
    assert!(plain > 1.3 * woken, "{woken} {plain}");
}

#[test]
fn with_flushers_both_have_the_same() {
    assert!((share_of_b(&Variant::FLUSHERS, 2048, 64) - 0.5).abs() < 0.05);
}
