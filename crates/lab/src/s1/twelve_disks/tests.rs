use super::*;

const ONE: Size = Size { disks: 1, warm_s: 4, counted_s: 4 };

fn ran(variant: &Variant, size: Size, batch: u64) -> Row {
    let queue = Queue { nr_requests: 128, request_kib: 64, batch, at_submission: false };
    run_one(variant, size, Setting { queue, disk_rate: DISK_RATE }, 1).unwrap()
}

fn of(row: &Row, name: &str) -> f64 {
    row.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap()
}

#[test]
fn flushers_change_files_less_than_writers_that_write_themselves() {
    let [rc1, flushers] = [&Variant::RC1, &Variant::FLUSHERS].map(|variant| ran(variant, Size::QUICK, 1));
    assert!(of(&rc1, "file_switches_per_gb") > 3.0 * of(&flushers, "file_switches_per_gb"), "{rc1}\n{flushers}");
    assert!(of(&rc1, "throughput_mb_per_s") < of(&flushers, "throughput_mb_per_s"), "{rc1}\n{flushers}");
    assert!(of(&rc1, "pdflush_share") < 0.05 && of(&rc1, "submitters") > of(&flushers, "submitters"), "{rc1}");
}

#[test]
fn requests_in_a_row_keep_files_together() {
    let [single, batched] = [1, 32].map(|batch| ran(&Variant::RC1, ONE, batch));
    assert!(of(&single, "file_switches_per_gb") > 5.0 * of(&batched, "file_switches_per_gb"), "{single}\n{batched}");
}

#[test]
fn the_same_seed_gives_the_same_row() {
    let [first, second] = [0; 2].map(|_| ran(&Variant::PDFLUSH, ONE, 32));
    assert_eq!(first, second);
}
